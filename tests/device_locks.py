"""A look at the lock of a device by another process."""

from __future__ import annotations

import fcntl
from pathlib import Path


def is_free(lock: Path) -> bool:
    """Return True if nobody has what this file locks for itself."""
    lock.touch()
    with lock.open() as other:
        try:
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
