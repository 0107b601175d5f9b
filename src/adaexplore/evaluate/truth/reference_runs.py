"""PyTorch's own error on an input set: the measure for candidates' errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from adaexplore.core.problem import Precision
from adaexplore.evaluate.truth.compare import Deviation, deviation, exact
from adaexplore.evaluate.truth.error_scale import ErrorScale, error_scale_of
from adaexplore.evaluate.truth.precision import ELEMENT_FACTOR, FLOOR
from adaexplore.evaluate.truth.runs import Noise, ReferenceRuns
from adaexplore.evaluate.truth.selections import Choice, Otherwise, Room, Selections, Ties, excused
from adaexplore.evaluate.truth.steps import Codes, Moved, Shifted, Steps
from adaexplore.sandbox.user.values import Inputs

NOISE: dict[Precision, float] = {"fp32": 2.0**-15, "tf32": 2.0**-8, "half": 2.0**-7}
"""Relative noise on inputs and parameters, by the loosest class asked for: larger than the rounding
of an honest kernel, so that what it leaves as it is, an honest kernel leaves as well."""

_ROUNDING: dict[Precision, float] = {"fp32": 2.0**-22, "tf32": 2.0**-12.5, "half": 2.0**-9.5}
"""What inputs and parameters are rounded by: four roundings to float32, or one to the operands of
the other classes (root mean square of rounding to nearest; half is bfloat16)."""
_IN_PROPORTION = 4.0
"""An element that less noise moves by so many times its share of what more noise does, or by more,
has come over a step; where it moves by less it is on a slope, however steep."""
_AS_STRICT = 4.0
"""Where PyTorch's own run is off by no more than this times its strict run, it rounds no operands:
it chose an algorithm that does not make use of the class."""
_STEEPEST = 2.0**-5
"""More than this is not granted to an element on a slope: zeros in its place would hardly show."""
_SHAKY = 1e-3  # what rounding to float32 may do at most, if anything is to be told from it
_STEP, _STEP_NOISES = 0.01, 32.0
"""Noise that moves an element by this much of its scale, and by that many times its own size, has
moved it over a step."""
_MOST_TIES, _MOST_INTEGER_TIES = 0.02, 0.5
_MOST_NOISES = 8.0
"""Noise that moves an element by so many times its own size, of the largest of those that an index
is chosen from, says nothing of rounding any more."""
_EQUAL: dict[Precision, torch.dtype] = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "half": torch.bfloat16,
}
"""What elements are rounded to before it is asked which are equal, by the loosest class."""


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
    strict = runs.run("fp32", inputs)
    varied = _Variations(runs, inputs, frozen)
    exactly = varied.values is not None
    values = varied.values or [exact(t) for _, t in strict]
    scaled = [v.is_floating_point() and v.numel() > 0 for v in values]
    arounds = [error_scale_of(v) if s else None for v, s in zip(values, scaled, strict=True)]
    ties = varied.ties(values, arounds)
    by_class: list[dict[Precision, Deviation]] = [{} for _ in values]
    for precision in runs.classes:
        outputs = strict if precision == "fp32" else runs.run(precision, inputs)
        for i, (_, out) in enumerate(outputs):
            left_out = excused(ties[i], out, values[i])
            by_class[i][precision] = deviation(
                out, values[i], ties=left_out, error_scale=arounds[i]
            )
    found = []
    for i, (path, out) in enumerate(strict):
        undecided = not isinstance(ties[i], Choice) and varied.is_chosen(i, values[i], arounds[i])
        own = ReferenceRun(
            path, out.dtype, values[i], by_class[i], ties[i], arounds[i], shaky=undecided
        )
        found.append(_with_blur(own, varied.blurred[i], i, varied) if varied.blurred else own)
    return found, exactly


class _Variations:
    """The reference in float64: as it is, with noise, with another choice among equals.

    `values` and `blurred` (with noise) are None where there is no float64 run.
    """

    def __init__(self, runs: ReferenceRuns, inputs: Inputs, frozen: Sequence[bool]) -> None:
        self._runs = runs
        self._inputs = inputs
        self._frozen = frozen
        self._seen = Selections()
        self._watches: list[Selections] = []
        self.noise = Noise(NOISE[runs.precision], frozen)
        steps = Steps()
        self.values = runs.float64(inputs, watch=self._seen, steps=steps)
        if self.values is None:  # an operation has no float64, or bears no watching
            self._seen, steps, self.values = Selections(), Steps(), runs.float64(inputs)
        moved = Moved(steps) if steps.values else None
        self.blurred = self._vary(self.noise, steps=moved)
        self.flips: dict[int, Deviation] = {}
        self._margins = moved.margins if moved and self.blurred is not None else []
        self._rounded: dict[Precision, list[torch.Tensor] | None] = {}
        self._otherwise: list[list[torch.Tensor]] = []

    def ties(
        self, values: list[torch.Tensor], arounds: list[ErrorScale | None]
    ) -> list[Ties | None]:
        """Return the elements of each output that may fall either way."""
        if self.blurred is None:
            return [None] * len(values)
        runs = [self.blurred]
        marked = self._marked(values, arounds, runs)
        if any(t is not None or a is None for t, a in zip(marked, arounds, strict=True)):
            runs += filter(None, [self._vary(self.noise.opposite())])
        if self._seen.any and not self._seen.all_followed:
            rounded_to = _EQUAL[self._runs.precision]
            ways = [self._vary(None, Otherwise(rounded_to, last)) for last in (False, True)]
            self._otherwise = [outputs for outputs in ways if outputs is not None]
            runs += self._otherwise
        marked = self._marked(values, arounds, runs)
        if sides := self._beside_steps():
            marked = [
                self._with_sides(
                    i, v, arounds[i], known, [r[i] for r in runs], [s[i] for s in sides]
                )
                for i, (v, known) in enumerate(zip(values, marked, strict=True))
            ]
        room = Room(FLOOR[self._runs.precision], _MOST_NOISES * self.noise.size)
        choices = [self._seen.choice(i, v, self._watches, room) for i, v in enumerate(values)]
        return [choice or t for choice, t in zip(choices, marked, strict=True)]

    def is_chosen(self, output: int, value: torch.Tensor, error_scale: ErrorScale | None) -> bool:
        """Return True if an output changes with the choice among equals."""
        if not self._otherwise:
            return False
        others = [outputs[output] for outputs in self._otherwise]
        return bool(_steps(self.noise, value, error_scale, *others).any())

    def rounded(self, precision: Precision) -> list[torch.Tensor] | None:
        """The outputs of a run whose inputs and parameters are off as a class's operands are."""
        if precision not in self._rounded:
            noise = Noise(_ROUNDING[precision], self._frozen)
            self._rounded[precision] = self._runs.float64(self._inputs, noise)
        return self._rounded[precision]

    def _with_sides(
        self,
        output: int,
        value: torch.Tensor,
        error_scale: ErrorScale | None,
        known: torch.Tensor | Codes | None,
        runs: list[torch.Tensor],
        sides: list[torch.Tensor],
    ) -> torch.Tensor | Codes | None:
        """Return what is marked in an output with the elements beside steps marked too.

        Where these are many, since sums hold some each, the effect of steps is noted in `flips`.
        """
        if error_scale is None:
            found = _ties(self.noise, value, None, *runs, *sides)
            return known if found is None else found
        scale = error_scale.scale(0, value.numel()).reshape(value.shape) + value.abs()
        floor = FLOOR[self._runs.precision]
        beside = torch.stack([(s - value).abs() > floor * scale for s in sides]).any(0)
        left_out = excused(known, value, value)
        both = beside if left_out is None else beside | left_out
        if float(both.double().mean()) <= _MOST_TIES:
            return both if bool(both.any()) else known
        for side in sides:
            found_off = deviation(side, value, ties=left_out, error_scale=error_scale)
            self.flips[output] = found_off.or_worse(self.flips.get(output, found_off))
        return known

    def _beside_steps(self) -> list[list[torch.Tensor]]:
        """Return the outputs with every value before a step shifted, to either side."""
        if all(margin is None for margin in self._margins):
            return []
        sides = (Shifted(self._margins, side) for side in (1, -1))
        runs = [self._runs.float64(self._inputs, steps=side) for side in sides]
        self._margins = []  # they take memory
        return [outputs for outputs in runs if outputs is not None]

    def _vary(
        self,
        noise: Noise | None,
        otherwise: Otherwise | None = None,
        steps: Steps | None = None,
    ) -> list[torch.Tensor] | None:
        if self.values is None:
            return None
        watch = Selections(otherwise) if self._seen.any else None
        outputs = self._runs.float64(self._inputs, noise, watch, steps)
        if outputs is not None and watch is not None:
            self._watches.append(watch)
        return outputs

    def _marked(
        self,
        values: list[torch.Tensor],
        arounds: list[ErrorScale | None],
        runs: list[list[torch.Tensor]],
    ) -> list[torch.Tensor | Codes | None]:
        columns = zip(values, arounds, *runs, strict=True)
        return [_ties(self.noise, *column) for column in columns]


def _with_blur(
    own: ReferenceRun, blurred: torch.Tensor, i: int, varied: _Variations
) -> ReferenceRun:
    """The run of output `i`, with what rounding inputs and parameters does to it."""
    left_out = excused(own.ties, blurred, own.value)
    moved = deviation(blurred, own.value, ties=left_out, error_scale=own.error_scale)
    share = _ROUNDING["fp32"] / varied.noise.size
    if not moved.norm * share <= _SHAKY:
        return replace(own, shaky=True)
    by_class = dict(own.by_class)
    if "fp32" in by_class:
        exact_to = _AS_STRICT * by_class["fp32"].norm
        for precision, found in own.by_class.items():
            if precision == "fp32":
                rounding = Deviation(moved.norm * share, moved.element * share)
                if flips := varied.flips.get(i):
                    few = Deviation(flips.norm * share**0.5, flips.element / ELEMENT_FACTOR)
                    rounding = rounding.or_worse(few)
            elif found.norm <= exact_to:
                rounding = _operands_rounded(own, blurred, i, varied, precision)
            else:
                continue
            by_class[precision] = found.or_worse(rounding)
    blur = {precision: moved.norm * FLOOR[precision] / varied.noise.size for precision in by_class}
    return replace(own, by_class=by_class, blur=blur)


def _operands_rounded(
    own: ReferenceRun, blurred: torch.Tensor, i: int, varied: _Variations, precision: Precision
) -> Deviation:
    """Return the effect of a class's rounding of operands on output `i`, by noise of that size.

    Steps are left out, slopes are not: those so steep that the larger noise moves them as far as
    over a step are left out of `ties` where it happens to move them less, and an honest run's
    rounding may then not.
    """
    outputs = varied.rounded(precision)
    if outputs is None:
        return Deviation(0.0, 0.0)
    steps = excused(own.ties, outputs[i], own.value)
    if own.error_scale is not None:
        most = _IN_PROPORTION * _ROUNDING[precision] / varied.noise.size
        allowed = (blurred - own.value).abs_().mul_(most)
        steps = (outputs[i] - own.value).abs_() > allowed
        del allowed  # as large as the output in float64
    found = deviation(outputs[i], own.value, ties=steps, error_scale=own.error_scale)
    return Deviation(found.norm, min(found.element, _STEEPEST))


def _ties(
    noise: Noise, value: torch.Tensor, error_scale: ErrorScale | None, *others: torch.Tensor
) -> torch.Tensor | Codes | None:
    """Mark elements that variations of the run move over a step; None where there is none.

    None as well where they do so in many places: that is no step but a function that amplifies.
    Integers that never move by more than one are no other integers for it, however many do.
    """
    if error_scale is None and value.dtype is not torch.bool and not value.is_floating_point():
        off = torch.stack([(o - value.to(torch.int64)).abs() for o in others]).amax(0)
        near, beyond = off == 1, off > 1
        share = float(beyond.double().mean())
        wide = beyond if 0 < share <= _MOST_INTEGER_TIES else None
        return Codes(near, wide) if wide is not None or bool(near.any()) else None
    found = _steps(noise, value, error_scale, *others)
    most = _MOST_INTEGER_TIES if error_scale is None else _MOST_TIES
    return found if 0 < float(found.double().mean()) <= most else None


def _steps(
    noise: Noise, value: torch.Tensor, error_scale: ErrorScale | None, *others: torch.Tensor
) -> torch.Tensor:
    if error_scale is None:
        return torch.stack([o != value for o in others]).any(0)
    scale = error_scale.scale(0, value.numel()).reshape(value.shape) + value.abs()
    step = max(_STEP, _STEP_NOISES * noise.size)
    return torch.stack([(o - value).abs() > step * scale for o in others]).any(0)
