"""The error of an output, and the precision class that follows from it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch

from adaexplore.core.problem import PRECISIONS, Likeness, Precision, Tolerance
from adaexplore.evaluate.truth.device_memory.pieces import (
    Marks,
    as_real,
    common_device,
    marked_in,
    part_of,
    pieces,
    share_marked,
)
from adaexplore.evaluate.truth.error_scale import ErrorScale, error_scale_of, row_length
from adaexplore.evaluate.truth.precision import ELEMENT_FACTOR, NORM_FACTOR
from adaexplore.evaluate.truth.selections import Ties, excused

_GLANCED = 1 << 16  # elements; of a larger output so many rows
_GLANCED_ROWS = 64  # at least: of rows that are left out to save a tenth, one is among so many
_LEAST_SUM = 1e-300
_SECRET = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Deviation:
    """Distance from the truth.

    `norm` is ‖out − ref‖ / ‖ref‖ over the elements where the truth is finite; `element` the largest
    absolute difference of one element over the size of its neighbours (`ErrorScale`), so that
    one wrong tile shows however large the rest of the output is. `absolute` is the largest
    difference as it is; benchmarks quote it, and it decides nothing. For integer and boolean
    outputs all are the share of unequal elements. Infinite where NaN or infinity do not stand where
    they should.
    """

    norm: float
    element: float
    absolute: float = 0.0

    def or_worse(self, other: Deviation) -> Deviation:
        """The larger of two in every respect."""
        return Deviation(
            max(self.norm, other.norm),
            max(self.element, other.element),
            max(self.absolute, other.absolute),
        )


INFINITE = Deviation(math.inf, math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Truth:
    """One output tensor of one input set, in float64 (integers as they are).

    `bounds` holds the largest deviation of each class on offer; they grow from strict to loose.
    `ties` are elements that may fall either way when the inputs are rounded, or another of equal
    elements is selected: a `Choice` says which indices are as good as the truth's, `Codes` which
    integers may be off by one; in other outputs (a comparison, a step) such elements are marked,
    and not compared. `error_scale` is
    `error_scale_of(value)`, where it is known already. `from_problem` is false on inputs unlike the
    problem's own, which test that a result is right and not how precise it is.
    """

    path: str
    value: torch.Tensor
    bounds: dict[Precision, Deviation]
    ties: Ties | None = None
    error_scale: ErrorScale | None = None
    from_problem: bool = True

    def deviation(self, out: torch.Tensor) -> Deviation:
        """Measures an output of the truth's shape."""
        return deviation(out, self.value, ties=self.excused(out), error_scale=self.error_scale)

    def excused(self, out: torch.Tensor) -> torch.Tensor | None:
        """The elements of an output that do not count."""
        return excused(self.ties, out, self.value)

    def classify(self, deviation: Deviation) -> Precision | None:
        """The strictest class with room for this deviation, None if it is wrong in all."""
        for precision in PRECISIONS:
            bound = self.bounds.get(precision)
            if bound and deviation.norm <= bound.norm and deviation.element <= bound.element:
                return precision
        return None


def share_within(out: torch.Tensor, truth: Truth, tolerance: Tolerance) -> float:
    """Return the share of an output's elements that are within a tolerance of the truth.

    Elements that do not count (see `Truth.excused`) are within it.
    """
    if truth.value.numel() == 0:
        return 1.0
    excused = truth.excused(out)
    out, expected = as_real(out).flatten(), truth.value.flatten()
    device = out.device

    def within(part: slice) -> torch.Tensor:
        found = _within(out[part], part_of(expected, part, device), tolerance)
        return found if excused is None else found | excused.flatten()[part]

    return share_marked(within, out.numel(), device)


def _within(out: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> torch.Tensor:
    if not expected.is_floating_point():
        return out == expected
    allowed = tolerance.atol + tolerance.rtol * expected.abs()
    alike = (out == expected) | (out.isnan() & expected.isnan())
    return alike | ((out.double() - expected).abs() <= allowed) & expected.isfinite()


def unlikeness(out: torch.Tensor, truth: Truth, likeness: Likeness) -> str:
    """Return how an output is less like the truth than a bound asks, empty if it is not.

    Elements that do not count (see `Truth.excused`) are as they should be, and only outputs of real
    numbers are compared.
    """
    expected = truth.value
    if not expected.is_floating_point() or not expected.numel():
        return ""
    excused = truth.excused(out)
    got, wanted = as_real(out).flatten(), expected.flatten()
    sums = torch.zeros(6, dtype=torch.float64, device=out.device)
    for part in pieces(len(got), out.device):
        left_out = None if excused is None else excused.flatten()[part]
        sums += _likeness_sums(got[part], part_of(wanted, part, out.device), left_out)
    product, shown2, wanted2, off1, wanted1, off2 = sums.tolist()
    norms = math.sqrt(shown2) * math.sqrt(wanted2)
    cosine = product / norms if norms else float(shown2 == wanted2)
    l1 = off1 / max(wanted1, _LEAST_SUM)
    rmse = math.sqrt(off2 / len(got))
    if cosine >= likeness.cosine and l1 <= likeness.l1 and rmse <= likeness.rmse:
        return ""
    return (
        f"{truth.path} is less like the reference's than {likeness.source} asks: cosine "
        f"{cosine:.4g} (at least {likeness.cosine:g}), relative L1 {l1:.2g} (at most "
        f"{likeness.l1:g}), RMSE {rmse:.2g} (at most {likeness.rmse:g})"
    )


def _likeness_sums(
    out: torch.Tensor, expected: torch.Tensor, excused: torch.Tensor | None
) -> torch.Tensor:
    """The sums over a part: products, squares of either, differences, sizes, their squares."""
    out = out.double()
    alike = (out == expected) | (out.isnan() & expected.isnan())
    if excused is not None:
        alike |= excused
    out = torch.where(alike, expected, out)
    off = torch.where(alike, 0.0, out - expected)
    wanted, shown = (t.nan_to_num(0.0, 0.0, 0.0) for t in (expected, out))
    sizes = (shown @ wanted, shown @ shown, wanted @ wanted)
    return torch.stack([*sizes, off.abs().sum(), wanted.abs().sum(), off @ off])


def near(out: torch.Tensor, strict: torch.Tensor, bound: Deviation) -> bool:
    """Return True if an output is, at a glance, within `bound` of a strict run's.

    By norm in the outputs' own dtype, and by element in rows drawn at random, of which a small
    output has none to spare. A yes is enough for a result that has been verified before, a no is a
    reason to look closely.
    """
    if not strict.numel():
        return True
    inexact, out, strict = _is_inexact(strict), as_real(out), as_real(strict)
    if not inexact:
        return _share_unequal(out, strict) <= bound.norm
    if not _distance(out, strict) <= bound.norm * torch.linalg.vector_norm(strict):
        return False
    rows = _drawn_rows(strict)
    if rows is not None:
        width = row_length(strict)
        out, strict = (t.reshape(-1, width)[rows] for t in (out, strict))
    return deviation(out, exact(strict)).element <= bound.element


def _distance(out: torch.Tensor, strict: torch.Tensor) -> torch.Tensor:
    """The norm of the difference of two tensors of one dtype."""
    one, other = out.flatten(), strict.flatten()
    parts = pieces(one.numel(), one.device)
    norms = [torch.linalg.vector_norm(one[part] - other[part]) for part in parts]
    distance: torch.Tensor = torch.linalg.vector_norm(torch.stack(norms))
    return distance


def _drawn_rows(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the numbers of some rows of a large tensor, drawn at random; None for all."""
    width = row_length(tensor)
    count, wanted = tensor.numel() // width, max(_GLANCED // width, _GLANCED_ROWS)
    if count <= wanted or tensor.numel() % width:
        return None
    return torch.tensor(_SECRET.sample(range(count), wanted), device=tensor.device)


def exact(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous copy to be compared with: float64, complex numbers as pairs, or integers."""
    real = as_real(tensor)
    dtype = torch.float64 if _is_inexact(tensor) else real.dtype
    return real.to(dtype, copy=True, memory_format=torch.contiguous_format)


def deviation(
    out: torch.Tensor,
    truth: torch.Tensor,
    *,
    ties: Marks | None = None,
    error_scale: ErrorScale | None = None,
) -> Deviation:
    """Measures `out` (any dtype) against `truth`, which `exact` made of a tensor of its shape.

    Elements marked in `ties` do not count. `error_scale` is as in `Truth`. It works piece by piece,
    on the device of the scale.
    """
    out = as_real(out)
    if truth.numel() == 0:
        return Deviation(0.0, 0.0)
    ties = ties.flatten() if isinstance(ties, torch.Tensor) else ties
    if not truth.is_floating_point():
        share = _share_unequal(out, truth, ties)
        return Deviation(share, share, share)
    known = error_scale or error_scale_of(truth, common_device(out, truth))
    out, truth = out.flatten(), truth.flatten()

    def parts() -> Iterator[_Part]:
        for part in pieces(truth.numel(), known.device, known.width):
            tied = None if ties is None else marked_in(ties, part)
            got, right = (part_of(t, part, known.device) for t in (out, truth))
            yield got, right, known.scale(part.start, part.stop), tied

    found = _over_all(parts())
    if not bool(found.isfinite().all()):
        if not all(_same_pattern(*part) for part in parts()):
            return INFINITE
        found = _over_all(_finite(*part) for part in parts())
    error2, size2, worst, absolute = found.tolist()
    # Against a truth of zeros, absolute error is all there is.
    return Deviation(math.sqrt(error2 / (size2 or truth.numel())), worst, absolute)


def _share_unequal(out: torch.Tensor, truth: torch.Tensor, ties: Marks | None = None) -> float:
    one, other, device = out.flatten(), truth.flatten(), common_device(out, truth)

    def unequal(part: slice) -> torch.Tensor:
        found = part_of(one, part, device) != part_of(other, part, device)
        return found if ties is None else found & ~marked_in(ties, part).to(device)

    return share_marked(unequal, one.numel(), device)


_Part = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]


def _compare(
    out: torch.Tensor, truth: torch.Tensor, scale: torch.Tensor, ties: torch.Tensor | None
) -> torch.Tensor:
    """Squared error and size, worst element and difference; on a GPU, without waiting for it."""
    difference = out.double() - truth
    if ties is not None:
        difference.masked_fill_(ties, 0.0)
    error2, size2 = difference.square().sum(), truth.square().sum()
    absolute = difference.abs_().max()
    return torch.stack([error2, size2, difference.div_(scale + truth.abs()).max(), absolute])


def _over_all(parts: Iterable[_Part]) -> torch.Tensor:
    """Squared error, squared size, worst element and worst difference of all parts."""
    total: torch.Tensor | None = None
    for part in parts:
        found = _compare(*part)
        if total is None:
            total = found
            continue
        total[:2] += found[:2]
        torch.maximum(total[2:], found[2:], out=total[2:])
    assert total is not None
    return total


def _same_pattern(
    out: torch.Tensor,
    truth: torch.Tensor,
    scale: torch.Tensor,  # noqa: ARG001 - a part has one
    ties: torch.Tensor | None,
) -> bool:
    """Return True if NaN and infinity stand where they should, and nowhere else."""
    alike = (out == truth) | (out.isnan() & truth.isnan())
    same = torch.where(truth.isfinite(), out.isfinite(), alike)
    if ties is not None:
        same |= ties
    return bool(same.all())


def _finite(
    out: torch.Tensor, truth: torch.Tensor, scale: torch.Tensor, ties: torch.Tensor | None
) -> _Part:
    """A part with zeros for what is not finite in it."""
    both = truth.isfinite() & out.isfinite()
    zero = torch.zeros((), dtype=truth.dtype, device=truth.device)
    return torch.where(both, out.double(), zero), torch.where(both, truth, zero), scale, ties


LOOSEST = 0.1
"""No class allows more than this relative error, however far off PyTorch's own run in it is."""


def bounds_from(
    runs: Mapping[Precision, Deviation], floors: Mapping[Precision, float]
) -> dict[Precision, Deviation]:
    """Bounds for each class from the deviation of PyTorch's own run in it.

    A looser class is never narrower than a stricter one; a class in which PyTorch's own run is not
    finite is not on offer. `floors` is what is always allowed in a class, relative.
    """
    norm = element = 0.0
    bounds: dict[Precision, Deviation] = {}
    for precision in PRECISIONS:
        if precision not in runs or not math.isfinite(runs[precision].norm):
            continue
        floor, factor, run = floors[precision], NORM_FACTOR[precision], runs[precision]
        norm = min(max(norm, floor, factor * run.norm), LOOSEST)
        element = max(element, ELEMENT_FACTOR * max(floor, factor * run.element))
        bounds[precision] = Deviation(norm, element)
    return bounds


def _is_inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
