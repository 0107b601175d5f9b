"""The size of an output near each of its elements: the scale of an honest error there.

Rounding errors of a product, a normalisation or a reduction grow with the size of a row and of a
column, not with the single element (which may be near zero by cancellation) nor with the largest of
the whole output (which may be a million times larger somewhere else).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

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

    def scale(self, start: int, stop: int) -> Tensor:
        """For the elements from `start`, where a row begins, to `stop`."""
        first, last = start // self.width, -(-stop // self.width)
        local = self.rows[first:last, None].expand(-1, self.width)
        if self.columns is not None:
            local = local * self.columns
        local = local + (_OF_ROW * self.largest[first:last, None] + _OF_ALL * self.typical)
        return local.flatten()[: stop - start]


def error_scale_of(truth: Tensor) -> ErrorScale:
    """Return the error scale of a float64 tensor; 1 everywhere where all of it is zero.

    Rows lie along the last axes. Where there are too few of them to tell, stretches in memory order
    stand for rows; in a small tensor, the whole is one.
    """
    size = truth.abs().flatten()
    if not bool(size.sum().isfinite()):
        size = torch.where(size.isfinite(), size, 0.0)
    width, in_rows = _reading(truth)
    rows = torch.nn.functional.pad(size, (0, -size.numel() % width)).reshape(-1, width)
    typical = _typical(_thin(size, _SAMPLE * _SAMPLE), 0)
    if bool(typical.isnan()):
        one = torch.ones_like(rows[:, 0])
        return ErrorScale(width, one, one, None, one[0])
    sizes = _or(_typical(_thin(rows.mT, _SAMPLE), 0), typical)
    columns = None
    if in_rows:
        columns = _or(_typical(_thin(rows, _SAMPLE), 0), typical) / typical
    return ErrorScale(width, sizes, rows.amax(1), columns, typical)


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
