"""PyTorch's own error on an input set: the measure for candidates' errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from adaexplore.core.problem import Precision
from adaexplore.evaluate.truth.compare import Deviation, deviation, exact
from adaexplore.evaluate.truth.device_memory.pieces import Marks, part_of
from adaexplore.evaluate.truth.error_scale import ErrorScale, error_scale_of
from adaexplore.evaluate.truth.precision import ELEMENT_FACTOR, FLOOR
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.selections import Choice, Ties, excused
from adaexplore.evaluate.truth.variations import ROUNDING, Variations
from adaexplore.sandbox.user.values import Inputs, NamedTensor

_IN_PROPORTION = 4.0
"""An element that less noise moves by so many times its share of what more noise does, or by more,
has come over a step; where it moves by less it is on a slope, however steep."""
_AS_STRICT = 4.0
"""Where PyTorch's own run is off by no more than this times its strict run, it rounds no operands:
it chose an algorithm that does not make use of the class."""
_STEEPEST = 2.0**-5
"""More than this is not granted to an element on a slope: zeros in its place would hardly show."""
_SHAKY = 1e-3  # what rounding to float32 may do at most, if anything is to be told from it


@dataclass(frozen=True)
class ReferenceRun:
    """One output of the reference on one input set.

    `value` is the truth; `by_class` the deviation of PyTorch's own run in each class. In the strict
    class that is at least what rounding the inputs and parameters to float32 would do, since
    PyTorch may happen to be exact where an honest kernel is not; in the others what rounding them
    to operands would do, where PyTorch itself rounds none. `ties` and `error_scale` are as in
    `compare.Truth`. `blur` is what the floors of each class do to inputs and parameters, None where
    it is not known. It is `shaky` where that leaves little of the truth, or where it depends
    on which of equal elements is selected and does not consist of their indices.
    """

    path: str
    dtype: torch.dtype
    value: torch.Tensor
    by_class: dict[Precision, Deviation]
    ties: Ties | None
    error_scale: ErrorScale | None
    blur: dict[Precision, float] | None = None
    shaky: bool = False

    @property
    def strictest(self) -> Deviation:
        """The deviation in the strictest class there is."""
        return next(iter(self.by_class.values()))


def reference_runs(
    runs: ReferenceRuns, inputs: Inputs, frozen: Sequence[bool]
) -> tuple[list[ReferenceRun], bool]:
    """Every output of the reference on these inputs, and whether the truth is float64.

    `frozen` tells for each input tensor whether noise would make it illegal.
    """
    outputs: dict[Precision, list[NamedTensor]] = {"fp32": runs.run("fp32", inputs)}
    forms = [(path, t.dtype) for path, t in outputs["fp32"]]
    varied = Variations(runs, inputs, frozen)
    exactly = varied.values is not None
    values = varied.values or [exact(t) for _, t in outputs["fp32"]]
    arounds = [
        error_scale_of(v, varied.device) if v.is_floating_point() and v.numel() > 0 else None
        for v in values
    ]
    ties = varied.ties(values, arounds)
    by_class: list[dict[Precision, Deviation]] = [{} for _ in values]
    for precision in runs.classes:
        # Nothing else holds the outputs: those of one class make room for the next one's.
        off = _deviations(
            outputs.pop(precision, []) or runs.run(precision, inputs), values, ties, arounds
        )
        for found, deviated in zip(by_class, off, strict=True):
            found[precision] = deviated
    outputs.clear()
    own = [
        ReferenceRun(
            *forms[i],
            values[i],
            by_class[i],
            ties[i],
            arounds[i],
            shaky=not isinstance(ties[i], Choice) and varied.is_chosen(i, values[i], arounds[i]),
        )
        for i in range(len(values))
    ]
    return (_with_blur(own, varied.blurred, varied) if varied.blurred else own), exactly


def _deviations(
    outputs: list[NamedTensor],
    values: list[torch.Tensor],
    ties: list[Ties | None],
    arounds: list[ErrorScale | None],
) -> list[Deviation]:
    return [
        deviation(out, value, ties=excused(tied, out, value), error_scale=around)
        for (_, out), value, tied, around in zip(outputs, values, ties, arounds, strict=True)
    ]


def _with_blur(
    found: list[ReferenceRun], blurred: list[torch.Tensor], varied: Variations
) -> list[ReferenceRun]:
    """The runs of all outputs, with what rounding inputs and parameters does to them."""
    moved = [
        deviation(
            off, own.value, ties=excused(own.ties, off, own.value), error_scale=own.error_scale
        )
        for own, off in zip(found, blurred, strict=True)
    ]
    share = ROUNDING["fp32"] / varied.noise.size
    steady = [i for i, m in enumerate(moved) if m.norm * share <= _SHAKY]
    wider = [dict(own.by_class) for own in found]
    for i in (i for i in steady if "fp32" in wider[i]):
        rounding = Deviation(moved[i].norm * share, moved[i].element * share)
        if flips := varied.flips.get(i):
            few = Deviation(flips.norm * share**0.5, flips.element / ELEMENT_FACTOR)
            rounding = rounding.or_worse(few)
        wider[i]["fp32"] = found[i].by_class["fp32"].or_worse(rounding)
    for precision in found[0].by_class:
        as_strict = [i for i in steady if _rounds_no_operands(found[i].by_class, precision)]
        outputs = (varied.rounded(precision) if as_strict else None) or []
        for i in as_strict if outputs else ():
            rounding = _operands_rounded(found[i], blurred[i], outputs[i], varied, precision)
            wider[i][precision] = found[i].by_class[precision].or_worse(rounding)
    return [
        replace(
            own,
            by_class=wider[i],
            blur={p: moved[i].norm * FLOOR[p] / varied.noise.size for p in wider[i]},
        )
        if i in steady
        else replace(own, shaky=True)
        for i, own in enumerate(found)
    ]


def _rounds_no_operands(by_class: dict[Precision, Deviation], precision: Precision) -> bool:
    """Return True if PyTorch's own run in a looser class is about as strict as its strict one."""
    if precision == "fp32" or "fp32" not in by_class:
        return False
    return by_class[precision].norm <= _AS_STRICT * by_class["fp32"].norm


def _operands_rounded(
    own: ReferenceRun,
    blurred: torch.Tensor,
    rounded: torch.Tensor,
    varied: Variations,
    precision: Precision,
) -> Deviation:
    """Return the effect of a class's rounding of operands on an output, by noise of that size.

    Steps are left out, slopes are not: those so steep that the larger noise moves them as far as
    over a step are left out of `ties` where it happens to move them less, and an honest run's
    rounding may then not.
    """
    steps: Marks | None = excused(own.ties, rounded, own.value)
    if own.error_scale is not None:
        most = _IN_PROPORTION * ROUNDING[precision] / varied.noise.size
        flat = [t.flatten() for t in (rounded, blurred, own.value)]

        def over(part: slice) -> torch.Tensor:
            one, other, value = (part_of(t, part, varied.device) for t in flat)
            return (one - value).abs_() > (other - value).abs_().mul_(most)

        steps = over
    found = deviation(rounded, own.value, ties=steps, error_scale=own.error_scale)
    return Deviation(found.norm, min(found.element, _STEEPEST))
