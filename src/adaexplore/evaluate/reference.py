"""The judge's side of a problem: the reference with its truths and its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adaexplore.errors import BadProblemError
from adaexplore.evaluate.baselines import Baselines
from adaexplore.evaluate.compare import Truth, deviation, exact
from adaexplore.evaluate.fresh import FreshInputs
from adaexplore.evaluate.inputs import input_sets
from adaexplore.evaluate.runs import ReferenceRuns
from adaexplore.evaluate.tensors import fingerprint, share
from adaexplore.evaluate.truth import CheckedSet, Truths
from adaexplore.problem import Problem
from adaexplore.sandbox.instance import Inputs, Instance, NamedTensor, check_outputs, tensors_of

_TIMED_SPAN_US = 40_000.0  # twice a block: a candidate may be faster
_SLOWED = 1.5
_RANDOM = 1e-2  # two runs of one reference that differ more than this draw random numbers


class Reference:
    """A problem's reference on its device, run once in every precision class and in float64.

    Raises `BadProblemError`, in one line, for a reference that cannot be run or verified against.
    """

    def __init__(self, problem: Problem, folder: Path) -> None:
        self.problem = problem
        self.instance = Instance.load(
            problem.source,
            "Model",
            device=problem.device,
            seed=problem.seed,
            mode=problem.mode,
            folder=folder,
            name=f"{problem.name}.py",
        )
        self.notes: list[str] = []
        first = self.instance.inputs(problem.seed)
        self.runs = ReferenceRuns(problem, self.instance, first)
        self.precision = self.runs.precision
        self.outputs = self._first_run(first)
        del first  # the device's memory is for the input sets
        truths = Truths(self.runs, self.notes)
        self.sets, self.errors = truths.sets, truths.errors
        self.parameters = {n: share(t) for n, t in self.instance.model.state_dict().items()}
        self.baselines = Baselines(self.runs, self.sets, self.notes)
        self.fresh = FreshInputs(
            self.instance, self._own.inputs, self.outputs, self.baselines.calls_in(_TIMED_SPAN_US)
        )

    def time_baselines(self) -> None:
        """A first look at the baselines, for `facts`; the caller holds the device."""
        self.baselines.times_us = self.baselines.time(self.fresh)

    def baselines_slowed(self, beside_us: Mapping[str, float]) -> bool:
        """Whether a baseline took much longer than at first, and no longer does."""

        def slower(now_us: Mapping[str, float]) -> bool:
            first_us = self.baselines.times_us
            return any(now_us[name] > _SLOWED * first_us[name] for name in first_us)

        return slower(beside_us) and not slower(self.baselines.time(self.fresh))

    def truths_of_slot(self, index: int) -> list[Truth] | None:
        """What a call on a slot of fresh inputs must give; None where the slot was written to.

        A strict run on the same inputs made again, since float64 for each would take too long.
        """
        original = self.fresh.original(index)
        if original is None:
            return None
        outputs = self.runs.run("fp32", original)
        known = self._own.truths
        return [truth.renewed(out) for (_, out), truth in zip(outputs, known, strict=True)]

    @property
    def _own(self) -> CheckedSet:
        return next(s for s in self.sets if s.own)

    def mend_inputs(self) -> bool:
        """Puts back what a candidate changed in the inputs; true if there was any."""
        changed = {s.name: s for s in self.sets if not s.intact()}
        if changed:
            for original in input_sets(self.instance, self.problem.seed):
                if original.name in changed:
                    changed[original.name].restore(original.inputs)
        return bool(changed)

    def facts(self) -> dict[str, Any]:
        """What a report should know about the reference, as plain data."""
        return {
            "precision": self.precision,
            "errors": self.errors,
            "baselines_us": self.baselines.times_us,
            "input_sets": [s.name for s in self.sets],
            "parameters": sum(p.numel() for p in self.instance.model.parameters()),
            "outputs": [
                {"path": path, "shape": list(t.shape), "dtype": str(t.dtype).partition(".")[2]}
                for path, t in self.outputs
            ],
            "compiles": self.baselines.compiled is not None,
            "notes": self.notes,
        }

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
