"""How wrong an output is, and which precision class that makes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from adaexplore.evaluate.precision import ELEMENT_FACTOR, NORM_FACTOR, floor_of
from adaexplore.problem import PRECISIONS, Precision

_RENEWED = 1.5


@dataclass(frozen=True, slots=True)
class Deviation:
    """Distance from the truth.

    `norm` is ‖out − ref‖ / ‖ref‖ over the elements where the truth is finite; `element` the largest
    absolute difference of one element over the root mean square of the truth. For integer and
    boolean outputs both are the share of unequal elements. Infinite where NaN or infinity do not
    stand where they should.
    """

    norm: float
    element: float


@dataclass(frozen=True, slots=True)
class Truth:
    """One output tensor of one input set, in float64 (integers as they are).

    `bounds` holds the largest deviation of each class on offer; they grow from strict to loose.
    """

    path: str
    value: torch.Tensor
    bounds: Mapping[Precision, Deviation]

    def classify(self, deviation: Deviation) -> Precision | None:
        """The strictest class with room for this deviation, None if it is wrong in all."""
        for precision in PRECISIONS:
            bound = self.bounds.get(precision)
            if bound and deviation.norm <= bound.norm and deviation.element <= bound.element:
                return precision
        return None

    def renewed(self, strict: torch.Tensor) -> Truth:
        """The truth for other inputs of the kind, given the output of a strict run on them.

        That run has an error of its own, a quarter or half of what the bounds allow.
        """
        bounds = {
            precision: Deviation(_RENEWED * bound.norm, _RENEWED * bound.element)
            for precision, bound in self.bounds.items()
        }
        return Truth(self.path, exact(strict), bounds)


def exact(tensor: torch.Tensor) -> torch.Tensor:
    """A copy to be compared with: float64, complex numbers as pairs, integers as they are."""
    return _real(tensor).to(torch.float64 if _is_inexact(tensor) else tensor.dtype, copy=True)


def deviation(out: torch.Tensor, truth: torch.Tensor) -> Deviation:
    """Measures `out` (any dtype) against `truth`, which `exact` made of a tensor of its shape."""
    out = _real(out)
    if truth.numel() == 0:
        return Deviation(0.0, 0.0)
    if not truth.is_floating_point():
        share = float((out != truth).double().mean())
        return Deviation(share, share)
    out64 = out.double()
    finite = truth.isfinite()
    if not bool(finite.all()):
        got, want = out64[~finite], truth[~finite]
        if not bool(((got == want) | (got.isnan() & want.isnan())).all()):
            return Deviation(float("inf"), float("inf"))
        out64, truth = out64[finite], truth[finite]
        if truth.numel() == 0:
            return Deviation(0.0, 0.0)
    difference = (out64 - truth).abs_()
    scale = float(truth.norm())
    rms = scale / truth.numel() ** 0.5
    norm, worst = float(difference.norm()), float(difference.max())
    if norm != norm or norm == float("inf"):
        return Deviation(float("inf"), float("inf"))
    if scale == 0.0:  # a truth of zeros: absolute error is all there is
        return Deviation(norm / truth.numel() ** 0.5, worst)
    return Deviation(norm / scale, worst / rms)


LOOSEST = 0.1
"""No class allows more than this relative error, however far off PyTorch's own run in it is."""


def bounds_from(
    runs: Mapping[Precision, Deviation], dtype: torch.dtype, peak: float
) -> dict[Precision, Deviation]:
    """Bounds for each class from the deviation of PyTorch's own run in it.

    A looser class is never narrower than a stricter one; a class in which PyTorch's own run is not
    finite is not on offer. `peak` is the largest absolute element of the truth over its root mean
    square: the floor of one element is relative to the largest.
    """
    norm = element = 0.0
    inexact = dtype.is_floating_point or dtype.is_complex
    bounds: dict[Precision, Deviation] = {}
    for precision in PRECISIONS:
        if precision not in runs or not math.isfinite(runs[precision].norm):
            continue
        floor = floor_of(dtype, precision) if inexact else 0.0
        factor, run = NORM_FACTOR[precision], runs[precision]
        norm = min(max(norm, floor, factor * run.norm), LOOSEST)
        element = max(element, ELEMENT_FACTOR * max(floor * max(peak, 1.0), factor * run.element))
        bounds[precision] = Deviation(norm, element)
    return bounds


def explain(out: torch.Tensor, truth: torch.Tensor) -> str:
    """Where and how an output is wrong: the share of wrong elements and the first of them."""
    out = _real(out)
    if not truth.is_floating_point():
        wrong = out != truth
    else:
        out = out.double()
        scale = truth[truth.isfinite()].abs().max() if bool(truth.isfinite().any()) else 1.0
        close = (out - truth).abs() <= 1e-3 * truth.abs() + 1e-4 * scale
        close &= truth.isfinite()
        wrong = ~(close | (out == truth) | (out.isnan() & truth.isnan()))
    count = int(wrong.sum())
    if count == 0:
        return "every element is close, but less accurate than the precision class allows"
    first = [int(i) for i in wrong.nonzero()[0]]
    got, want = out[tuple(first)].item(), truth[tuple(first)].item()
    nans = int(out.isnan().sum()) if out.is_floating_point() else 0
    text = f"{count} of {truth.numel()} elements are wrong ({100 * count / truth.numel():.3g} %), "
    text += f"the first at {first}: got {got:.6g}, expected {want:.6g}"
    return text + (f"; {nans} elements are NaN" if nans else "")


def _is_inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
