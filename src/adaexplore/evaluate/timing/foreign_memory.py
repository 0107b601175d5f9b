"""The memory of a candidate's process, in which outputs are made before they are delivered.

A process that computes right into the judge's memory copies nothing, and would hide the time of
that copy of its work. So the judge looks for outputs where the process says that it made them.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence

import torch

from adaexplore.evaluate.wire.tensors import shuffled_parts

_LIBC = ctypes.CDLL(None, use_errno=True)
_WORD = (1 << 64) - 1


class _Span(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def may_read(pid: int) -> bool:
    """Return whether this process may read the memory of another; Yama may deny that."""
    return _read(pid, 0, 0, 1) < 0 and ctypes.get_errno() == errno.EFAULT


def memory_of(pid: int, address: int, size: int) -> torch.Tensor:
    """Return bytes of another process, read in a random order; zeros where there are none."""
    found = torch.zeros(size, dtype=torch.uint8)
    for start, stop in shuffled_parts(size):
        _read(pid, found.data_ptr() + start, address + start, stop - start)
    return found


def bytes_of(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the memory of dense tensors."""
    return [t.as_strided((t.numel(),), (1,)).view(torch.uint8) for t in tensors]


def _read(pid: int, home: int, address: int, size: int) -> int:
    here, there = _Span(home, size), _Span(address & _WORD, size)
    one = ctypes.c_ulong(1)
    read: int = _LIBC.process_vm_readv(
        pid, ctypes.byref(here), one, ctypes.byref(there), one, ctypes.c_ulong(0)
    )
    return read
