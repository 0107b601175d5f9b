"""The structure that a problem's own draws of an input share, and other draws that keep it.

A kernel may rely on what is always so: that a matrix is triangular, that rows sum to one, that
indices lie in range. It must not rely on what one generator happens to give, such as numbers
between 0 and 1. The rule for telling them apart: whatever `torch.rand` or `torch.randn` would show
as well is chance, everything else that all draws show is structure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Draw = Callable[[Tensor, torch.Generator], Tensor]
"""Other values in the place of a tensor's own, of its shape and dtype."""

_SAMPLE = 1 << 16
_FEW = 64
_UNORDERED = (torch.uint16, torch.uint32, torch.uint64)
_DIMS_OF_FIELDS = 2
_FEWEST_VALUES = 3
_BEYOND = 1 << 62
_MOST_ROTATED = 256
_TOO_FEW = 8  # integers of a single draw that tell nothing: lengths, offsets
_CLOSE = 1e-3
_CHANCE = 28.0  # e^-28 is never
_ORDER_CHANCE = 10.0  # e^-10 is rare, and only what cannot be drawn otherwise is lost by it


@dataclass(frozen=True, slots=True)
class Structure:
    """Properties of an input that hold in all draws of the problem.

    `frozen`: only the problem itself knows how to draw it (it never changes, is sorted, takes few
    values, is positive definite, adds up to a fixed number). Of the rest, floating-point numbers
    keep `zeros` (where there is always a zero), are `symmetric` in the last two axes, at least
    `least`, or have rows that sum to one (`"sum"`) or have length one (`"length"`). Integers lie
    between `low` and `high`, each field of a short axis between its own, apart from a `sentinel`,
    which keeps its places. With `row_counts`, every row has the same number of zeros, or of False
    among bools, wherever they are. With `ordered`, a variation only puts other tensors in another
    order, and floating-point numbers keep their places and signs.
    """

    frozen: bool = False
    zeros: Tensor | None = None
    symmetric: bool = False
    least: float | None = None
    unit: str = ""
    low: Tensor | int = 0
    high: Tensor | int = 0
    sentinel: int | None = None
    row_counts: bool = False
    ordered: bool = False

    def keep(self, drawn: Tensor, own: Tensor) -> Tensor:
        """Return `drawn`, bent to the structure, in the place of a draw of the problem's own."""
        if self.symmetric:
            drawn = (drawn + drawn.mT) / 2
        if self.unit == "sum":
            drawn = drawn.float().softmax(-1).to(drawn.dtype)
        elif self.unit == "length":
            drawn = torch.nn.functional.normalize(drawn, dim=-1)
        elif self.least is not None:
            drawn = drawn.abs() + self.least
        if self.zeros is not None:
            drawn = drawn.masked_fill(self.zeros, 0)
        return drawn.masked_fill(own == 0, 0) if self.row_counts else drawn


def structure_of(draws: Sequence[Tensor]) -> Structure:
    """The structure that draws of one input share; several that are all alike make it frozen."""
    first = draws[0]
    if first.is_complex() or first.numel() == 0 or is_only_stored(first):
        return Structure(frozen=True)
    never_changes = len(draws) > 1 and all(torch.equal(first, t) for t in draws[1:])
    if never_changes or _are_sorted(draws):
        return Structure(frozen=True)
    if first.is_floating_point():
        return _of_floats(draws)
    if first.dtype is torch.bool:
        return Structure(row_counts=_have_equal_rows(draws))
    if len(draws) == 1 and first.numel() < _TOO_FEW:
        return Structure(frozen=True)
    if all(_has_unlikely_order(t) or _are_intervals(t) for t in draws) or _same_sum(draws):
        return Structure(frozen=True)
    sentinel = _sentinel(draws)
    low, high = ranges_of(draws, sentinel)
    return Structure(low=low, high=high, sentinel=sentinel)


def _of_floats(draws: Sequence[Tensor]) -> Structure:
    symmetric = all(_is_symmetric(t) for t in draws)
    positive_definite = symmetric and all(
        bool((t.diagonal(dim1=-2, dim2=-1) > 0).all()) for t in draws
    )
    rotates = all(_is_orthogonal(t) for t in draws)
    if positive_definite or rotates or all(_is_discrete(t) for t in draws):
        return Structure(frozen=True)
    zeros = draws[0] == 0
    always = bool(zeros.any()) and all(torch.equal(zeros, t == 0) for t in draws[1:])
    unit = ""
    if draws[0].dim() and draws[0].shape[-1] > 1:
        if all(_is_near(t.sum(-1, dtype=torch.float64), 1) and bool((t >= 0).all()) for t in draws):
            unit = "sum"
        elif all(
            _is_near(torch.linalg.vector_norm(t, dim=-1, dtype=torch.float64), 1) for t in draws
        ):
            unit = "length"
    return Structure(
        zeros=zeros if always else None,
        symmetric=symmetric,
        least=_bound_away_from_zero(draws),
        unit=unit,
        row_counts=not always and bool(zeros.any()) and _have_equal_rows(draws),
    )


def _have_equal_rows(draws: Sequence[Tensor]) -> bool:
    """Return True if every row of every draw has as many zeros as any other, and other numbers."""
    if not draws[0].dim() or draws[0].numel() < _FEW or draws[0].shape[-1] == draws[0].numel() > 1:
        return False
    counts = torch.cat([(t != 0).sum(-1).flatten() for t in draws])
    return bool((counts == counts[0]).all()) and 0 < int(counts[0]) < draws[0].shape[-1]


def is_only_stored(t: Tensor) -> bool:
    """Return True for floating-point numbers of 8 bits, and integers without a sign of more.

    PyTorch does not order them.
    """
    return (t.is_floating_point() and t.itemsize == 1) or t.dtype in _UNORDERED


def _bound_away_from_zero(draws: Sequence[Tensor]) -> float | None:
    """The smallest value seen, if so many uniform numbers would have come closer to zero."""
    count = sum(t.numel() for t in draws)
    least = min(float(t.min()) for t in draws)
    mean = sum(float(t.mean(dtype=torch.float64)) for t in draws) / len(draws)
    return least if count > _CHANCE and least > _CHANCE / count * mean > 0 else None


def _is_near(values: Tensor, target: float) -> bool:
    return bool(((values - target).abs() <= _CLOSE * abs(target)).all())


def _is_symmetric(t: Tensor) -> bool:
    return t.dim() >= 2 and t.shape[-1] == t.shape[-2] > 1 and torch.allclose(t, t.mT, rtol=_CLOSE)


def _are_sorted(draws: Sequence[Tensor]) -> bool:
    """Return True if all ascend, or descend, along an axis that has enough in them to show it."""

    def is_sorted(t: Tensor, axis: int, *, down: bool) -> bool:
        before, after = t.narrow(axis, 0, t.shape[axis] - 1), t.narrow(axis, 1, t.shape[axis] - 1)
        return bool(((before >= after) if down else (before <= after)).all())

    def shows(axis: int) -> bool:  # by chance, one in size! rows is sorted
        size = draws[0].shape[axis]
        rows = sum(t.numel() / size for t in draws)
        return size >= 3 and rows * math.lgamma(size + 1) > _ORDER_CHANCE

    return any(
        all(is_sorted(t, axis, down=down) for t in draws)
        for axis in filter(shows, range(draws[0].dim()))
        for down in (False, True)
    )


def _sentinel(draws: Sequence[Tensor]) -> int | None:
    """Return the least or largest integer, if it lies apart from all others and is there too often.

    Such as -100 for what a loss leaves out. Apart is far away, or the only one below zero. Too
    often for chance, by Chernoff's bound.
    """
    every = torch.cat([t.flatten().to(torch.int64) for t in draws])
    values, counts = every.unique(return_counts=True)  # type: ignore[no-untyped-call]
    if len(values) < _FEWEST_VALUES:
        return None
    expected = every.numel() / (int(values[-1]) - int(values[0]) + 1)
    gaps = values.diff()
    for end, others in ((0, gaps[1:]), (-1, gaps[:-1])):
        count, gap = int(counts[end]), int(gaps[end])
        is_apart = gap > 2 * int(others.max()) or (end == 0 and values[0] < 0 <= values[1])
        if is_apart and count > expected and count * (math.log(count / expected) - 1) > _CHANCE:
            return int(values[end])
    return None


def ranges_of(draws: Sequence[Tensor], sentinel: int | None) -> tuple[Tensor | int, Tensor | int]:
    """Return the least and the largest integer; by field, where those of a short axis differ.

    A field has the same index on the first or the last axis, the shorter of the two.
    """
    every = torch.stack([t.to(torch.int64) for t in draws])
    marked = (
        every == sentinel if sentinel is not None else torch.zeros_like(every, dtype=torch.bool)
    )
    lows, highs = every.masked_fill(marked, _BEYOND), every.masked_fill(marked, -_BEYOND)
    low, high = int(lows.min()), int(highs.max())
    shape = draws[0].shape
    if len(shape) < _DIMS_OF_FIELDS or draws[0].numel() < _FEW * min(shape[0], shape[-1]):
        return low, high
    axis = 1 if shape[0] < shape[-1] else every.dim() - 1
    others = [each for each in range(every.dim()) if each != axis]
    field_lows, field_highs = lows.amin(others, keepdim=True), highs.amax(others, keepdim=True)
    spans = field_highs - field_lows
    differ = every.shape[axis] <= _FEW and bool((2 * spans.clamp_min(0) < high - low).any())
    return (field_lows[0], field_highs[0]) if differ and bool((spans >= 0).all()) else (low, high)


def _is_orthogonal(t: Tensor) -> bool:
    if t.dim() < _DIMS_OF_FIELDS or not 1 < t.shape[-1] == t.shape[-2] <= _MOST_ROTATED:
        return False
    wide = t.double()
    unit = torch.eye(t.shape[-1], dtype=torch.float64, device=t.device)
    return bool(((wide @ wide.mT - unit).abs() <= _CLOSE).all())


def _is_discrete(t: Tensor) -> bool:
    """Return True if it holds whole numbers only, or a few numbers again and again."""
    sample = t.flatten()[:: -(-t.numel() // _SAMPLE)]
    if torch.equal(sample, sample.round()) and torch.equal(t, t.round()):
        return True
    return _distinct(sample) <= min(sample.numel() // 8, _FEW)


def _has_unlikely_order(t: Tensor) -> bool:
    """Return True if no integer occurs twice, in all or in a row, though some should.

    A permutation, or an index set.
    """
    span = int(t.max()) - int(t.min()) + 1
    rows = t.reshape(-1, t.shape[-1]) if t.dim() else t.reshape(1, 1)
    ordered = rows.sort(-1).values
    if bool((ordered[:, 1:] == ordered[:, :-1]).any()):
        return False
    width, count = rows.shape[1], t.numel()
    in_rows = len(rows) * width * width > 2 * _CHANCE * span
    return in_rows or (count * count > 2 * _CHANCE * span and _distinct(t) == count)


def _are_intervals(t: Tensor) -> bool:
    """Return True for pairs of which the first is always the smaller: begin and end."""
    is_pairs = t.dim() >= 2 and t.shape[-1] == 2 and t.numel() > 2 * _CHANCE
    return is_pairs and bool((t[..., 0] < t[..., 1]).all())


def _distinct(t: Tensor) -> int:
    ordered = t.flatten().sort().values
    return 1 + int((ordered[1:] != ordered[:-1]).sum())


def _same_sum(draws: Sequence[Tensor]) -> bool:
    return len({int(t.sum()) for t in draws}) == 1 and len(draws) > 1 and draws[0].numel() > 1
