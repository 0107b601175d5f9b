"""System calls without a function in Python."""

from __future__ import annotations

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long

Argument = int | bytes | ctypes.Array[ctypes.c_char] | None


def syscall(number: int, *arguments: Argument) -> int:
    """Return the result of a system call; raise `OSError`. Integers are passed as 64 bits."""
    return _checked(_LIBC.syscall(ctypes.c_long(number), *map(_word, arguments)))


def prctl(option: int, *arguments: int) -> int:
    """Call prctl(2); missing arguments are 0. Raises `OSError`."""
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return _checked(_LIBC.prctl(ctypes.c_int(option), *map(ctypes.c_ulong, padded)))


def unshare(flags: int) -> None:
    """Call unshare(2). Raises `OSError`."""
    _checked(_LIBC.unshare(ctypes.c_int(flags)))


def mount(kind: str | None, target: str, flags: int, options: str | None = None) -> None:
    """Call mount(2), with the file system's type as its source. Raises `OSError`."""
    name = kind.encode() if kind else None
    data = options.encode() if options else None
    _checked(_LIBC.mount(name, target.encode(), name, ctypes.c_ulong(flags), data))


def _word(argument: Argument) -> object:
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
