"""The judge's side of a problem: the reference with its truths and its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.core.facts import OutputForm, ReferenceFacts
from adaexplore.core.problem import Precision, Problem
from adaexplore.evaluate.timing.baselines import Baselines
from adaexplore.evaluate.timing.clock import clock_for
from adaexplore.evaluate.timing.fresh import FreshInputs
from adaexplore.evaluate.timing.output_copy import Delivery
from adaexplore.evaluate.timing.roofline import SpeedOfLight, measure_peaks, work_of
from adaexplore.evaluate.truth.compare import deviation, exact, near
from adaexplore.evaluate.truth.labels import labels_of, overhead_label
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import CheckedSet, Truths
from adaexplore.evaluate.wire.tensors import fingerprint, share
from adaexplore.sandbox.user_code import Instance, is_out_of_memory
from adaexplore.sandbox.values import Inputs, NamedTensor, check_outputs, tensors_of

_TIMED_SPAN_US = 40_000.0  # twice a block: a candidate may be faster
_SLOWED = 1.5
_RANDOM = 1e-2  # two runs of one reference that differ more than this draw random numbers


class Reference:
    """A problem's reference on its device, run once in every precision class and in float64.

    A `brief` one is for verdicts: `torch.compile` is no baseline, and times are rough unless a
    candidate is timed beside its parent.

    Raises `BadProblemError`, in one line, for a reference that cannot be run or verified against.
    """

    def __init__(self, problem: Problem, folder: Path, *, brief: bool = False) -> None:
        self.problem = problem
        self.brief = brief
        self.instance = Instance.of(problem, folder)
        self.notes: list[str] = []
        first = self.instance.inputs(problem.seed)
        self.runs = ReferenceRuns(problem, self.instance, first)
        self.precision = self.runs.precision
        self.outputs = self._first_run(first)
        del first  # the device's memory is for the input sets
        self.truths = Truths(self.runs, self.notes)
        self.sets, self.errors = self.truths.sets, self.truths.errors
        self.delivery = Delivery(self.outputs, lambda: clock_for(problem.device))
        self.light: SpeedOfLight | None = None
        self.parameters = {n: share(t) for n, t in self.instance.model.state_dict().items()}

    @cached_property
    def baselines(self) -> Baselines:
        """Made when first asked for: they take seconds to compile, and not everybody times."""
        return Baselines(self.runs, self.sets, self.notes, compiles=not self.brief)

    @cached_property
    def fresh(self) -> FreshInputs:
        """Inputs that a candidate has not seen before it is timed on them."""
        span = self.baselines.calls_in(_TIMED_SPAN_US)
        return FreshInputs(self.instance, self._own.inputs, self.outputs, span)

    @cached_property
    def labels(self) -> dict[str, str]:
        """What its speedups are worth less for, each with why; see `probes`."""
        return labels_of(self.runs, self.truths)

    def complete(self) -> None:
        """Makes now what would be made when first asked for: timing needs the device for itself."""
        _ = self.baselines, self.fresh, self.labels

    def time_baselines(self) -> None:
        """A first look at the baselines, for `facts`; the caller holds the device."""
        self.baselines.times_us = self.baselines.time(self.fresh)
        eager_us = self.baselines.times_us["eager"]
        self.labels.update(overhead_label(self.runs, self._own.inputs, eager_us))
        self.light = self._speed_of_light()

    def _speed_of_light(self) -> SpeedOfLight | None:
        try:
            with self.runs.scope("fp32"):
                work = work_of(self.instance, self._own.inputs)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            self.notes.append(f"no roofline: the reference's operations cannot be counted: {error}")
            return None
        clock = clock_for(self.problem.device)
        peaks = measure_peaks(self.problem.device, clock, work.bytes, self.precision)
        return SpeedOfLight(work, peaks, self.precision)

    def baselines_slowed(self, beside_us: Mapping[str, float]) -> bool:
        """Whether a baseline took much longer than at first, and no longer does."""

        def slower(now_us: Mapping[str, float]) -> bool:
            first_us = self.baselines.times_us
            return any(now_us[name] > _SLOWED * first_us[name] for name in first_us)

        return slower(beside_us) and not slower(self.baselines.time(self.fresh))

    def is_near(self, inputs: Inputs, outputs: list[torch.Tensor], precision: Precision) -> bool:
        """Whether outputs on fresh inputs are, at a glance, as right as the class asks."""
        strict = self.runs.run("fp32", inputs)
        return all(
            near(out, expected, truth.bounds[precision].norm)
            for out, (_, expected), truth in zip(outputs, strict, self._own.truths, strict=True)
        )

    @property
    def _own(self) -> CheckedSet:
        return next(s for s in self.sets if s.own)

    def mend_inputs(self) -> bool:
        """Puts back what a candidate changed in the inputs; true if there was any."""
        changed = {s.name: s for s in self.sets if not s.intact()}
        if changed:
            for original in self.truths.inputs:
                if original.name in changed:
                    changed[original.name].restore(original.inputs)
        return bool(changed)

    def untimed_facts(self) -> ReferenceFacts:
        """Return the facts that need no measurement of time."""
        return ReferenceFacts(
            precision=self.precision,
            errors=self.errors,
            input_sets=tuple(s.name for s in self.sets),
            parameters=sum(p.numel() for p in self.instance.model.parameters()),
            outputs=tuple(
                OutputForm(path, tuple(t.shape), str(t.dtype).partition(".")[2])
                for path, t in self.outputs
            ),
            labels=self.labels,
            notes=tuple(self.notes),
        )

    def facts(self) -> ReferenceFacts:
        """Return the facts about the reference, its baselines timed."""
        return replace(
            self.untimed_facts(),
            baselines_us=self.baselines.times_us,
            roofline=self.light.facts() if self.light else None,
            compiles=self.baselines.compiled is not None,
        )

    def _first_run(self, inputs: Inputs) -> list[NamedTensor]:
        """The outputs on the first own inputs, after checking that they can be verified."""
        name = f"{self.problem.name}.py"
        before = [fingerprint(t) for t in tensors_of(inputs)]
        outputs = self.runs.run("fp32", inputs)
        check_outputs(name, outputs)
        if [fingerprint(t) for t in tensors_of(inputs)] != before:
            raise BadProblemError(
                f"{name}: forward() changes its inputs in place; work on a clone inside forward()"
            )
        again = self.runs.run("fp32", inputs, seed_offset=1)
        for (path, first), (_, second) in zip(outputs, again, strict=True):
            difference = deviation(second, exact(first))
            if difference.norm > _RANDOM:
                raise BadProblemError(
                    f"{name}: {path} differs between two runs on the same inputs (dropout in "
                    "training mode, or random numbers in forward()); try --mode eval"
                )
        return outputs
