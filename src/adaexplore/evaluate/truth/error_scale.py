"""The size of an output near each of its elements: the scale of an honest error there.

Rounding errors of a product, a normalisation or a reduction grow with the size of a row and of a
column, not with the single element (which may be near zero by cancellation) nor with the largest of
the whole output (which may be a million times larger somewhere else).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from adaexplore.evaluate.truth.device_memory.pieces import at_once

_FEW = 16  # fewer numbers have no typical size
_SAMPLE = 64
_CHUNK = 256
_OF_ROW = 0.01
"""Elements this much smaller than the largest of their row are judged on its scale: an honest
kernel may subtract large numbers, or underflow, where the truth is nearly zero."""
_OF_ALL = 0.02
"""Rows this much smaller than the typical size are judged on its scale: an honest algorithm may mix
rows (Strassen's does)."""


@dataclass(frozen=True, slots=True)
class ErrorScale:
    """The scale around each element of a tensor, which is read as rows of `width` in memory order.

    It is r c / t + 0.01 m + 0.02 t, to which a user adds the element's own |x|. The typical size t
    is the median of |x| over the elements that are neither zero nor infinite nor NaN; r is that of
    the element's row and c of its column, so that r c / t follows outputs whose rows and columns
    have sizes of their own; m is the largest |x| of the row.
    """

    width: int
    rows: Tensor
    largest: Tensor
    columns: Tensor | None
    typical: Tensor

    @property
    def device(self) -> torch.device:
        """The device on which the scale is, and on which elements are compared."""
        return self.typical.device

    def scale(self, start: int, stop: int) -> Tensor:
        """For the elements from `start` to `stop`."""
        first, last = start // self.width, -(-stop // self.width)
        if last - first == 2 and stop - start < self.width:  # parts of two long rows
            middle = (first + 1) * self.width
            return torch.cat([self.scale(start, middle), self.scale(middle, stop)])
        begin = start - first * self.width
        within = slice(begin, stop - first * self.width) if last - first == 1 else slice(None)
        local = self.rows[first:last, None].expand(-1, len(range(self.width)[within]))
        if self.columns is not None:
            local = local * self.columns[within]
        local = local + (_OF_ROW * self.largest[first:last, None] + _OF_ALL * self.typical)
        skipped = 0 if last - first == 1 else begin
        return local.flatten()[skipped : skipped + stop - start]


def error_scale_of(truth: Tensor, device: torch.device | None = None) -> ErrorScale:
    """Return the error scale of a float64 tensor, on a device; 1 everywhere where all is zero.

    Rows lie along the last axes. Where there are too few of them to tell, stretches in memory order
    stand for rows; in a small tensor, the whole is one.
    """
    device = device or truth.device
    flat = truth.flatten()
    width, in_rows = _reading(truth)
    typical = _typical(_size(_thin(flat, _SAMPLE * _SAMPLE), device), 0)
    if bool(typical.isnan()):
        one = torch.ones(-(-flat.numel() // width), dtype=truth.dtype, device=device)
        return ErrorScale(width, one, one, None, one[0])
    found = [_of_rows(flat[part], width, device) for part in _whole_rows(flat, width, device)]
    sizes, largest = (torch.cat(column) for column in zip(*found, strict=True))
    columns = None
    if in_rows:
        some = _thin(flat.view(-1, width), _SAMPLE)
        stretches = torch.split(some, max(at_once(device) // len(some), 1), dim=1)
        every = torch.cat([_typical(_size(part, device), 0) for part in stretches])
        columns = _or(every, typical) / typical
    return ErrorScale(width, _or(sizes, typical), largest, columns, typical)


def _whole_rows(flat: Tensor, width: int, device: torch.device) -> Iterator[slice]:
    """Cut a vector into stretches of rows, none of them cut."""
    step = max(at_once(device) // width, 1) * width
    return (slice(start, start + step) for start in range(0, flat.numel(), step))


def _of_rows(flat: Tensor, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the typical and the largest size of each row, the last of which may be shorter."""
    rows = torch.nn.functional.pad(flat, (0, -flat.numel() % width)).view(-1, width)
    some = _size(rows[:, :: -(-width // _SAMPLE)], device)
    stretches = torch.split(rows, at_once(device), dim=1)
    largest = torch.stack([_size(part, device).amax(1) for part in stretches]).amax(0)
    return _typical(some, 1), largest


def _size(t: Tensor, device: torch.device) -> Tensor:
    """|x|, and 0 for what is not finite."""
    size = t.to(device).abs()
    return torch.where(size.isfinite(), size, 0.0)


def row_length(truth: Tensor) -> int:
    """Return the length of the rows that `error_scale_of` reads a tensor as."""
    return _reading(truth)[0]


def _reading(truth: Tensor) -> tuple[int, bool]:
    """Return the length of a row, and True if it is one of the tensor's own axes."""
    width = 1
    for length in reversed(truth.shape[1:]):
        width *= length
        if width >= _FEW:
            break
    if width >= _FEW and truth.numel() >= _FEW * width:
        return width, True
    return _CHUNK if truth.numel() >= 2 * _CHUNK else truth.numel(), False


def _thin(t: Tensor, most: int) -> Tensor:
    """At most so many slices along the first axis, evenly spread."""
    return t[:: -(-t.shape[0] // most)]


def _typical(size: Tensor, axis: int) -> Tensor:
    """The median of what is not zero along an axis; NaN where all is."""
    return torch.where(size > 0, size, torch.nan).nanmedian(axis).values


def _or(values: Tensor, default: Tensor) -> Tensor:
    return torch.where(values.isnan(), default, values)
