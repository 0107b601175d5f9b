"""Variations of a reference's float64 run, and the elements that they move over a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from adaexplore.core.problem import Precision
from adaexplore.evaluate.truth.compare import Deviation, deviation
from adaexplore.evaluate.truth.device_memory.pieces import (
    all_marks,
    part_of,
    pieces,
    share_marked,
)
from adaexplore.evaluate.truth.device_memory.turns import let_others_time
from adaexplore.evaluate.truth.error_scale import ErrorScale
from adaexplore.evaluate.truth.precision import FLOOR
from adaexplore.evaluate.truth.runs import Noise, ReferenceRuns
from adaexplore.evaluate.truth.selections import Otherwise, Room, Selections, Ties, excused
from adaexplore.evaluate.truth.steps import Codes, Moved, SensitiveRows, Shifted, Steps
from adaexplore.sandbox.user.values import Inputs

NOISE: dict[Precision, float] = {"fp32": 2.0**-15, "tf32": 2.0**-8, "half": 2.0**-7}
"""Relative noise on inputs and parameters, by the loosest class asked for: larger than the rounding
of an honest kernel, so that what it leaves as it is, an honest kernel leaves as well."""

ROUNDING: dict[Precision, float] = {"fp32": 2.0**-22, "tf32": 2.0**-12.5, "half": 2.0**-9.5}
"""What inputs and parameters are rounded by: four roundings to float32, or one to the operands of
the other classes (root mean square of rounding to nearest; half is bfloat16)."""
_STEP, _STEP_NOISES = 0.01, 32.0
"""Noise that moves an element by this much of its scale, and by that many times its own size, has
moved it over a step."""
_MOST_TIES, _MOST_INTEGER_TIES = 0.02, 0.5
_LUCK = 16
"""Where noise moves one in so many elements of a row over a step, it could be any of them."""
_MOST_SIGMAS, _MOST_OFF = 4.0, 0.5
"""Rounding moves an element by so many times what it typically does to its row, and by no more than
this share of its scale: zeros in the place of a row would show."""
_MOST_NOISES = 8.0
"""Noise that moves an element by so many times its own size, of the largest of those that an index
is chosen from, says nothing of rounding any more."""
_EQUAL: dict[Precision, torch.dtype] = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "half": torch.bfloat16,
}
"""What elements are rounded to before it is asked which are equal, by the loosest class."""


class Variations:
    """The reference in float64: as it is, with noise, with another choice among equals.

    `values` is None where there is no float64 run; `blurred` (with noise) is of a strict run then.
    """

    def __init__(self, runs: ReferenceRuns, inputs: Inputs, frozen: Sequence[bool]) -> None:
        self.device = torch.device(runs.problem.device)
        self._runs = runs
        self._inputs = inputs
        self._frozen = frozen
        self._watches: list[Selections] = []
        self.noise = Noise(NOISE[runs.precision], frozen)
        steps = self._watch()
        if self.values is None and runs.float64_otherwise(inputs) is not None:
            steps = self._watch()
        let_others_time(runs.problem.device)
        moved = Moved(steps) if steps.values else None
        if self.values is None:
            self.blurred = runs.strict_with_noise(inputs, self.noise)
        else:
            self.blurred = self._vary(self.noise, steps=moved)
        self.flips: dict[int, Deviation] = {}
        self._margins = moved.margins if moved and self.blurred is not None else []
        self._otherwise: list[list[torch.Tensor]] = []

    def _watch(self) -> Steps:
        """Run the reference in float64 and note what it selects; return its steps."""
        self._seen, steps = Selections(), Steps()
        self.values = self._runs.float64(self._inputs, watch=self._seen, steps=steps)
        if self.values is None:  # an operation has no float64, or bears no watching
            self._seen, steps = Selections(), Steps()
            self.values = self._runs.float64(self._inputs)
        return steps

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
        in_rows = [self._in_rows(i, t, values, arounds) for i, t in enumerate(marked)]
        return [choice or t for choice, t in zip(choices, in_rows, strict=True)]

    def _in_rows(
        self,
        output: int,
        ties: torch.Tensor | Codes | None,
        values: list[torch.Tensor],
        arounds: list[ErrorScale | None],
    ) -> torch.Tensor | Codes | SensitiveRows | None:
        """Return the ties of an output with what rounding may do to the rows that have many."""
        error_scale = arounds[output]
        if error_scale is None or not isinstance(ties, torch.Tensor) or self.blurred is None:
            return ties
        precision = self._runs.precision
        sigmas = _MOST_SIGMAS * ROUNDING[precision] / NOISE[precision]
        return _sensitive_rows(ties, values[output], self.blurred[output], error_scale, sigmas)

    def is_chosen(self, output: int, value: torch.Tensor, error_scale: ErrorScale | None) -> bool:
        """Return True if an output changes with the choice among equals."""
        if not self._otherwise:
            return False
        others = [outputs[output] for outputs in self._otherwise]
        steps = _steps(self.noise, value, error_scale, others, self.device)
        return share_marked(steps, value.numel(), self.device) > 0

    def rounded(self, precision: Precision) -> list[torch.Tensor] | None:
        """The outputs of a run whose inputs and parameters are off as a class's operands are."""
        return self._runs.float64(self._inputs, Noise(ROUNDING[precision], self._frozen))

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
            found = _ties(self.noise, value, None, *runs, *sides, device=self.device)
            return known if found is None else found
        moved = _moved_over(value, error_scale, sides, FLOOR[self._runs.precision], self.device)
        left_out = excused(known, value, value)
        tied = None if left_out is None else left_out.flatten()

        def beside(part: slice) -> torch.Tensor:
            return moved(part) if tied is None else moved(part) | tied[part]

        share = share_marked(beside, value.numel(), self.device)
        if share <= _MOST_TIES:
            return all_marks(beside, value.shape, self.device) if share else known
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
        let_others_time(self._runs.problem.device)
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
        return [_ties(self.noise, *column, device=self.device) for column in columns]


def _ties(
    noise: Noise,
    value: torch.Tensor,
    error_scale: ErrorScale | None,
    *others: torch.Tensor,
    device: torch.device,
) -> torch.Tensor | Codes | None:
    """Mark elements that variations of the run move over a step; None where there is none.

    None as well where they do so in many places: that is no step but a function that amplifies.
    Integers that never move by more than one are no other integers for it, however many do.
    """
    if error_scale is None and value.dtype is not torch.bool and not value.is_floating_point():
        return _codes(value, others, device)
    steps = _steps(noise, value, error_scale, others, device)
    most = _MOST_INTEGER_TIES if error_scale is None else _MOST_TIES
    share = share_marked(steps, value.numel(), device)
    return all_marks(steps, value.shape, device) if 0 < share <= most else None


def _sensitive_rows(
    marks: torch.Tensor,
    value: torch.Tensor,
    blurred: torch.Tensor,
    error_scale: ErrorScale,
    sigmas: float,
) -> torch.Tensor | SensitiveRows:
    """Return the marks, with the rows of which so many elements are marked that it could be any.

    Such a row nearly cancels as a whole, as a sum does in which all its elements have the same few
    weights. Its elements may be off by `sigmas` times what noise typically moves them by. Where
    such rows are too many, the marks are returned alone.
    """
    flat, off, marked = value.flatten(), blurred.flatten(), marks.view(-1)
    device, width = marks.device, error_scale.width
    sizes = torch.full((-(-len(flat) // width),), float(width), dtype=torch.float64, device=device)
    sizes[-1] -= len(sizes) * width - len(flat)
    moved, many = torch.zeros_like(sizes), torch.zeros_like(sizes)
    for part in pieces(len(flat), device, width):
        row = torch.arange(part.start, part.stop, device=device) // width
        own, scale = part_of(flat, part, device), error_scale.scale(part.start, part.stop)
        share = (part_of(off, part, device) - own) / (scale + own.abs())
        moved.index_add_(0, row, share.square())
        many.index_add_(0, row, marked[part].double())
    allowed = (sigmas * (moved / sizes).sqrt()).clamp(max=_MOST_OFF)
    allowed[many * _LUCK < sizes] = 0.0
    found = float(sizes[allowed > 0].sum()) / len(flat)
    return SensitiveRows(marks, allowed, error_scale) if 0 < found <= _MOST_TIES else marks


def _codes(
    value: torch.Tensor, others: Sequence[torch.Tensor], device: torch.device
) -> Codes | None:
    """Return the integers that variations of the run change."""
    flat, changed = value.flatten(), [o.flatten() for o in others]

    def off(part: slice) -> torch.Tensor:
        own = part_of(flat, part, device).to(torch.int64)
        return torch.stack([(part_of(o, part, device) - own).abs() for o in changed]).amax(0)

    def beyond(part: slice) -> torch.Tensor:
        return off(part) > 1

    near = all_marks(lambda part: off(part) == 1, value.shape, device)
    share = share_marked(beyond, value.numel(), device)
    wide = all_marks(beyond, value.shape, device) if 0 < share <= _MOST_INTEGER_TIES else None
    return Codes(near, wide) if wide is not None or bool(near.any()) else None


def _steps(
    noise: Noise,
    value: torch.Tensor,
    error_scale: ErrorScale | None,
    others: Sequence[torch.Tensor],
    device: torch.device,
) -> Callable[[slice], torch.Tensor]:
    """Return the marks of elements that others move over a step."""
    if error_scale is not None:
        step = max(_STEP, _STEP_NOISES * noise.size)
        return _moved_over(value, error_scale, others, step, device)
    flat, moved = value.flatten(), [o.flatten() for o in others]

    def unequal(part: slice) -> torch.Tensor:
        own = part_of(flat, part, device)
        return torch.stack([part_of(o, part, device) != own for o in moved]).any(0)

    return unequal


def _moved_over(
    value: torch.Tensor,
    error_scale: ErrorScale,
    others: Sequence[torch.Tensor],
    step: float,
    device: torch.device,
) -> Callable[[slice], torch.Tensor]:
    """Return the marks of elements that others move by more than `step` of their scale."""
    flat, moved = value.flatten(), [o.flatten() for o in others]

    def marks(part: slice) -> torch.Tensor:
        own = part_of(flat, part, device)
        most = step * (error_scale.scale(part.start, part.stop) + own.abs())
        found = torch.zeros_like(own, dtype=torch.bool)
        for other in moved:
            found |= (part_of(other, part, device) - own).abs_() > most
        return found

    return marks
