"""A log of who holds a GPU and who waits for it, for those who ask where its time goes."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Literal

DEVICE_LOG = "ADAEXPLORE_DEVICE_LOG"
"""The variable that names a folder, to whose `held.PID` and `waited.PID` processes append lines."""

_CALLS = 6
_PACKAGE = Path(__file__).parents[1]


def note(kind: Literal["held", "waited"], began: float, *, exclusive: bool) -> None:
    """Append a hold of a GPU's lock, or a wait for it, that began at `began` and ends now.

    A line is a JSON list: the beginning (seconds since 1970), the seconds, whether it was alone,
    and the innermost calls as MODULE:FUNCTION:LINE. Nothing is logged without `DEVICE_LOG`.
    """
    folder = os.environ.get(DEVICE_LOG)
    if not folder:
        return
    record = [round(began, 3), round(time.time() - began, 3), exclusive, _calls()]
    file = Path(folder) / f"{kind}.{os.getpid()}"
    with contextlib.suppress(OSError), file.open("a", encoding="utf-8") as log:  # confined, perhaps
        log.write(json.dumps(record) + "\n")


def _calls() -> list[str]:
    """Return the innermost calls of the package but those of the lock."""
    frame: FrameType | None = sys._getframe(1)
    found: list[str] = []
    while frame is not None and len(found) < _CALLS:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(_PACKAGE) and file.stem not in ("device_log", "lock"):
            found.append(f"{file.stem}:{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return found
