"""Files that users name: what is read of them, and how one is written whole."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from adaexplore.core.errors import BadInputError

MOST_BYTES = 16 << 20
"""Size of the largest source or table that is read."""


def why_unread(file: Path) -> str:
    """Return why a file is not to be read as text: its kind or its size; empty where it may be.

    A folder may: opening it fails. So may `/dev/null`, which is empty. Raises `OSError` for a file
    that is not there.
    """
    found = file.stat()
    kind = stat.S_IFMT(found.st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR) and not file.samefile(os.devnull):
        return "is no regular file"
    if kind == stat.S_IFREG and found.st_size > MOST_BYTES:
        return f"is larger than {MOST_BYTES >> 20} MiB"
    return ""


def require_writable(path: Path) -> Path:
    """Return a path; raise `BadInputError` where no file can be written there, before long work."""
    folder = path.absolute().parent
    if path.is_dir():
        raise BadInputError(f"cannot write {path}: it is a folder; name a file")
    if not folder.is_dir():
        raise BadInputError(f"cannot write {path}: there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise BadInputError(f"cannot write {path}: you may not; name another file")
    return path


def can_make_folders(folder: Path) -> bool:
    """Return True where a folder can be made in `folder`.

    Rights alone do not say so: `os.access` knows neither Landlock nor file systems like /proc.
    """
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".adaexplore-"):
            return True
    except OSError:
        return False


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8, that is whole at every moment.

    A link to a file is followed; a device or a pipe is written directly. Raises `BadInputError`
    where the file cannot be written: then it is as it was, and no draft is left.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        place = Path(os.path.realpath(path))
        draft = place.with_name(f"{place.name}.{os.getpid()}.new")
        try:
            draft.write_bytes(data)
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot write {path}: {error.strerror}") from None
