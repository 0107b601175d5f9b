"""How wrong PyTorch itself is on an input set: what candidates' errors are measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from adaexplore.evaluate.compare import Deviation, deviation, exact
from adaexplore.evaluate.precision import FLOOR
from adaexplore.evaluate.runs import Noise, ReferenceRuns
from adaexplore.evaluate.surroundings import Surroundings, surroundings
from adaexplore.problem import Precision
from adaexplore.sandbox.instance import Inputs

NOISE: dict[Precision, float] = {"fp32": 2.0**-15, "tf32": 2.0**-8, "half": 2.0**-7}
"""Relative noise on inputs and parameters, by the loosest class asked for: larger than the rounding
of an honest kernel, so that what it leaves as it is, an honest kernel leaves as well."""

_ROUNDING: dict[Precision, float] = {"fp32": 2.0**-22, "tf32": 2.0**-12.5, "half": 2.0**-9.5}
"""What inputs and parameters are rounded by: four roundings to float32, or one to the operands of
the other classes (root mean square of rounding to nearest; half is bfloat16)."""
_AS_STRICT = 4.0
"""Where PyTorch's own run is off by no more than this times its strict run, it rounds no operands:
it chose an algorithm that does not make use of the class."""
_SHAKY = 1e-3  # what rounding to float32 may do at most, if anything is to be told from it
_STEP, _STEP_NOISES = 0.01, 32.0
"""Noise that moves an element by this much of its scale, and by that many times its own size, has
moved it over a step."""
_MOST_TIES, _MOST_INTEGER_TIES = 0.02, 0.5


@dataclass(frozen=True)
class OwnRun:
    """One output of the reference on one input set.

    `value` is the truth; `by_class` the deviation of PyTorch's own run in each class. In the strict
    class that is at least what rounding the inputs and parameters to float32 would do, since
    PyTorch may happen to be exact where an honest kernel is not; in the others what rounding them
    to operands would do, where PyTorch itself rounds none. `ties` and `around` are as in
    `compare.Truth`. `blur` is what the floors of each class do to inputs and parameters, None where
    it is not known; it is `shaky` where that leaves little of the truth.
    """

    path: str
    dtype: torch.dtype
    value: torch.Tensor
    by_class: dict[Precision, Deviation]
    ties: torch.Tensor | None
    around: Surroundings | None
    blur: dict[Precision, float] | None = None
    shaky: bool = False

    @property
    def strictest(self) -> Deviation:
        """The deviation in the strictest class there is."""
        return next(iter(self.by_class.values()))


def own_runs(
    runs: ReferenceRuns, inputs: Inputs, frozen: Sequence[bool]
) -> tuple[list[OwnRun], bool]:
    """Every output of the reference on these inputs, and whether the truth is float64.

    `frozen` tells for each input tensor whether noise would make it illegal.
    """
    strict = runs.run("fp32", inputs)
    values = runs.float64(inputs)
    exactly = values is not None
    values = values or [exact(t) for _, t in strict]
    arounds = [surroundings(v) if v.is_floating_point() else None for v in values]
    noise = Noise(NOISE[runs.precision], frozen)
    blurred = runs.float64(inputs, noise) if exactly else None
    ties: list[torch.Tensor | None] = [None] * len(values)
    if blurred is not None:
        ties = [_ties(noise, *three) for three in zip(values, arounds, blurred, strict=True)]
        stepped = any(
            t is not None or not v.is_floating_point() for t, v in zip(ties, values, strict=True)
        )
        other = runs.float64(inputs, noise.opposite()) if stepped else None
        if other is not None:
            both = zip(values, arounds, blurred, other, strict=True)
            ties = [_ties(noise, *four) for four in both]
    by_class: list[dict[Precision, Deviation]] = [{} for _ in values]
    for precision in runs.classes:
        outputs = strict if precision == "fp32" else runs.run(precision, inputs)
        for i, (_, out) in enumerate(outputs):
            by_class[i][precision] = deviation(out, values[i], ties=ties[i], around=arounds[i])
    found = []
    for i, (path, out) in enumerate(strict):
        own = OwnRun(path, out.dtype, values[i], by_class[i], ties[i], arounds[i])
        found.append(_with_blur(own, blurred[i], noise.size) if blurred else own)
    return found, exactly


def _with_blur(own: OwnRun, blurred: torch.Tensor, noise: float) -> OwnRun:
    moved = deviation(blurred, own.value, ties=own.ties, around=own.around)
    if not moved.norm * _ROUNDING["fp32"] / noise <= _SHAKY:
        return replace(own, shaky=True)

    def rounding(precision: Precision) -> Deviation:
        share = _ROUNDING[precision] / noise
        return Deviation(moved.norm * share, moved.element * share)

    by_class = dict(own.by_class)
    if "fp32" in by_class:
        exact_to = _AS_STRICT * by_class["fp32"].norm
        for precision, found in own.by_class.items():
            if precision == "fp32" or found.norm <= exact_to:
                by_class[precision] = found.or_worse(rounding(precision))
    blur = {precision: moved.norm * FLOOR[precision] / noise for precision in by_class}
    return replace(own, by_class=by_class, blur=blur)


def _ties(
    noise: Noise, value: torch.Tensor, around: Surroundings | None, *blurred: torch.Tensor
) -> torch.Tensor | None:
    """Where noise of either sign moves an element over a step; None where it does so nowhere.

    None as well where it does so in many places: that is no step but a function that amplifies.
    """
    if around is not None:
        scale = around.scale(0, value.numel()).reshape(value.shape) + value.abs()
        step = max(_STEP, _STEP_NOISES * noise.size)
        found = torch.stack([(b - value).abs() > step * scale for b in blurred]).any(0)
        most = _MOST_TIES
    else:
        found = torch.stack([b != value for b in blurred]).any(0)
        most = _MOST_INTEGER_TIES
    return found if 0 < float(found.double().mean()) <= most else None
