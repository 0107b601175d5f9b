"""Large tensors in pieces: what a comparison holds beside them stays small, wherever they lie.

A float64 truth of some gigabytes lies in the host's memory where little of a GPU's is free, since
that is for inputs, outputs and candidates. Its pieces are moved to the device that compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from adaexplore.evaluate.truth.device_memory.room import leaves_room, room_on
from adaexplore.evaluate.truth.device_memory.turns import let_others_time
from adaexplore.sandbox.lock import device_lent

ON_CPU, ON_GPU = 1 << 15, 1 << 24
_LARGE_BYTES = 2 << 30
"""A truth larger than this may be kept in the host's memory, to which copying is slow."""

_STORED = (torch.uint16, torch.uint32)

Marks = Tensor | Callable[[slice], Tensor]
"""Marked elements: all of a tensor's, or those of the pieces that are asked for."""


def at_once(device: torch.device) -> int:
    """Return how many elements are worked on at once: on the CPU few enough for one core's cache.

    Waking the other cores for each of many small operations costs more than they save, most of all
    where somebody else keeps them busy.
    """
    return ON_CPU if device.type == "cpu" else ON_GPU


def pieces(length: int, device: torch.device, width: int = 1) -> Iterator[slice]:
    """Cut a vector into stretches of whole rows of this width, or into stretches of single rows."""
    most = at_once(device)
    rows = max(most // width, 1) * width
    for row in range(0, length, rows):
        end = min(row + rows, length)
        for start in range(row, end, most):
            yield slice(start, min(start + most, end))


def part_of(flat: Tensor, part: slice, device: torch.device) -> Tensor:
    """Return a piece of a vector, on a device.

    Pieces from the host's memory take seconds in all: others may time between them.
    """
    if flat.device != device:
        let_others_time(str(device))
    return flat[part].to(device)


def common_device(*tensors: Tensor) -> torch.device:
    """Return the device that compares tensors: a GPU if any of them is there."""
    return next((t for t in tensors if t.is_cuda), tensors[0]).device


def marked_in(marks: Marks, part: slice) -> Tensor:
    """Return which elements of a piece are marked; a tensor of marks is a vector."""
    return marks[part] if isinstance(marks, Tensor) else marks(part)


def share_marked(marks: Marks, length: int, device: torch.device) -> float:
    """Return the share of the elements that are marked; 0 where there are none."""
    counts = [marked_in(marks, part).sum() for part in pieces(length, device)]
    return int(torch.stack(counts).sum()) / length if counts else 0.0


def all_marks(
    marks: Callable[[slice], Tensor], shape: Sequence[int], device: torch.device
) -> Tensor:
    """Return the marks of all pieces as one tensor of this shape."""
    found = torch.empty(tuple(shape), dtype=torch.bool, device=device)
    flat = found.view(-1)
    for part in pieces(flat.numel(), device):
        flat[part] = marks(part)
    return found


def all_finite(tensor: Tensor, device: torch.device) -> bool:
    """Return True if a tensor holds neither NaN nor infinity, by a look on a device."""
    flat = tensor.flatten()
    parts = (part_of(flat, part, device) for part in pieces(flat.numel(), device))
    return all(bool(part.isfinite().all()) for part in parts)


def kept(value: Tensor) -> Tensor:
    """Return a contiguous copy in the memory where a truth of its size is kept."""
    large = value.is_cuda and value.nbytes > _LARGE_BYTES
    on_host = large and not leaves_room(room_on(str(value.device)), value.nbytes)
    if not on_host:
        return torch.empty(value.shape, dtype=value.dtype, device=value.device).copy_(value)
    torch.cuda.synchronize(value.device)
    with device_lent(str(value.device)):  # for seconds, in which the GPU only waits
        return torch.empty(value.shape, dtype=value.dtype).copy_(value)


def computable(tensor: Tensor) -> Tensor:
    """The same numbers in a dtype that PyTorch computes with; it only stores floats of 8 bits.

    It also only stores most unsigned integers. Those of 64 bits are told apart by the same bits.
    """
    if tensor.dtype is torch.uint64:
        return tensor.view(torch.int64)
    if tensor.dtype in _STORED:
        return tensor.to(torch.int64)
    return tensor.float() if tensor.is_floating_point() and tensor.itemsize == 1 else tensor


def as_real(tensor: Tensor) -> Tensor:
    """The same numbers, complex ones as pairs."""
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj())
    return computable(tensor)
