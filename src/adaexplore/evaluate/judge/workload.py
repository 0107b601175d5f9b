"""One workload of a reference, as the judge holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack

import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Precision, Problem, Tolerance, Workload
from adaexplore.core.verdict.facts import InputForm, OutputForm, ReferenceProducts, WorkloadFacts
from adaexplore.evaluate.timing.baselines.built import Baselines, why_not_built
from adaexplore.evaluate.timing.baselines.offered import Subject, names_offered
from adaexplore.evaluate.timing.clock import clock_for
from adaexplore.evaluate.timing.fresh import FreshInputs
from adaexplore.evaluate.timing.products import measure_products, trace
from adaexplore.evaluate.timing.roofline import RooflineModel, measure_peaks, work_of
from adaexplore.evaluate.truth.compare import deviation, exact, near, share_within, unlikeness
from adaexplore.evaluate.truth.device_memory.turns import turn_for_truths, wanted_for_truths
from adaexplore.evaluate.truth.forms import input_forms, output_forms
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import CheckedSet, Truths
from adaexplore.evaluate.wire.tensors import fingerprint, share
from adaexplore.sandbox.user.randomness import draws_random
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import (
    Inputs,
    NamedTensor,
    check_inputs,
    check_outputs,
    tensors_of,
)

_TIMED_SPAN_US = 40_000.0  # twice a block: a candidate may be faster
_SLOWED = 1.5
_RANDOM = 1e-2  # two runs of one reference that differ more than this draw random numbers


class JudgedWorkload:
    """The inputs, truths, fresh inputs, baselines, roofline and products of one workload.

    Its input sets are numbered from `first_set` on in a candidate's process, and its slots from
    `first_slot` on. `baselines_us` are the times of a first look, those of baselines that are not
    built from their trials. `sharing` is the number of timed workloads, which share the memory for
    slots. `buffers` are memory for a candidate's outputs, and `outputs` the same tensors by their
    paths: they hold the reference's first outputs until a candidate is loaded.

    A `lean` one makes do with the fewest input sets; with `own_only`, none is unlike the problem's
    own. Large tensors wait for the turn for large work, which `turn` keeps until it is closed;
    `before_turn` gets the names of the baselines on offer once the reference is known to run, and
    does what needs no turn.

    Raises `BadProblemError` where it cannot be verified against.
    """

    def __init__(
        self,
        problem: Problem,
        instance: Instance,
        workload: Workload,
        notes: list[str],
        *,
        first_set: int,
        sharing: int,
        turn: ExitStack,
        before_turn: Callable[[Sequence[str]], None],
        lean: bool = False,
        own_only: bool = False,
    ) -> None:
        self.problem = problem
        self.workload = workload
        self.first_set = first_set
        self.first_slot = 0
        self._instance = instance
        self._notes = notes
        self._sharing = sharing
        first = instance.inputs(problem.seed, workload)
        check_inputs(f"{problem.name}.py", workload.file or workload.draw, first)
        self.runs = ReferenceRuns(problem, instance, first, workload)
        with ExitStack() as own_turn:
            wanted = wanted_for_truths(tensors_of(first), problem.device)
            if wanted:
                del first  # nothing is held while others have their turn
                own_turn.enter_context(turn_for_truths(wanted, problem.device))
                first = instance.inputs(problem.seed, workload)
            outputs = self._first_run(first)
            wanted = max(wanted, wanted_for_truths((t for _, t in outputs), problem.device))
            if wanted:
                names = names_offered(Subject(instance.model, first, problem.device, sharing))
                del first, outputs
                own_turn.close()
                before_turn(names)
                own_turn.enter_context(turn_for_truths(wanted, problem.device))
                first = instance.inputs(problem.seed, workload)
                outputs = self.runs.run("fp32", first)
            turn.enter_context(own_turn.pop_all())
        self.buffers = [share(t.contiguous()) for _, t in outputs]
        self.outputs = [(p, b.tensor) for (p, _), b in zip(outputs, self.buffers, strict=True)]
        del first, outputs  # the device's memory is for the input sets
        self.truths = Truths(
            self.runs,
            notes,
            other_weights=(first_set == 0 or workload.timed) and not lean,
            keeps_weights=first_set == 0,
            fewest=lean,
            own_only=own_only,
        )
        self.sets = self.truths.sets
        self._check_bounds()
        self.baselines = Baselines(self.runs, self.sets, notes, forms=sharing)
        self.fresh: FreshInputs
        self.baselines_us: dict[str, float] = {}
        self.roofline: RooflineModel | None = None
        self.products: ReferenceProducts | None = None

    @property
    def name(self) -> str:
        """The workload's name."""
        return self.workload.name

    @property
    def tolerances(self) -> list[Tolerance]:
        """The tolerances that are prescribed for it."""
        every = self.problem.checks.tolerances
        return [each for each in every if each.workload in ("", self.name)]

    @property
    def from_problem(self) -> CheckedSet:
        """The first set of the problem's own inputs."""
        return self.sets[self.own_index]

    @property
    def own_index(self) -> int:
        """The index of the first set of the problem's own inputs."""
        return next(i for i, s in enumerate(self.sets) if s.from_problem)

    @property
    def set_numbers(self) -> tuple[int, ...]:
        """The numbers of its input sets in a candidate's process."""
        return tuple(range(self.first_set, self.first_set + len(self.sets)))

    @property
    def set_names(self) -> tuple[str, ...]:
        """The names of its input sets, with the workload's where the problem has several."""
        return tuple(self.set_name(index) for index in range(len(self.sets)))

    def set_name(self, index: int) -> str:
        """Return the name of input set number `index`."""
        name = self.sets[index].name
        return f"{self.name}/{name}" if len(self.problem.workloads) > 1 else name

    @property
    def bounds(self) -> dict[str, float]:
        """The least relative error allowed in an output of numbers, by input set.

        It is that of the class asked for; empty where that is not on offer.
        """
        asked = self.runs.precision
        found = {
            each.name: [
                truth.bounds[asked].norm
                for truth in each.truths
                if asked in truth.bounds and truth.value.is_floating_point()
            ]
            for each in self.sets
        }
        return {name: min(norms) for name, norms in found.items() if norms}

    @property
    def output_forms(self) -> tuple[OutputForm, ...]:
        """The form of each output."""
        return output_forms(self.outputs)

    @property
    def input_forms(self) -> tuple[InputForm, ...]:
        """The form of each argument, where the inputs are those of a file."""
        return input_forms(self._instance.model, self.from_problem.inputs, self.workload)

    def prepare_timing(self) -> None:
        """Make the slots for timed calls."""
        fastest_us = min(self.baselines_us.values(), default=None)
        self.fresh = FreshInputs(
            self._instance,
            self.from_problem.inputs,
            self.outputs,
            self.baselines.calls_in(_TIMED_SPAN_US, fastest_us),
            self.workload,
            sharing=self._sharing,
        )

    def time_baselines(self) -> None:
        """Time the baselines that are built; the caller holds the device."""
        self.baselines_us |= self.baselines.time(self.fresh, self.baselines.built)

    def measure_roofline(self) -> None:
        """Measure the roofline, on a GPU the products too; the caller holds the device."""
        self.roofline = self._roofline()
        if self.problem.device != "cpu":
            with self.runs.scope("fp32"):
                traced = trace(self._instance, self.from_problem.inputs)
            self.products = measure_products(traced, self.problem.device) if traced else None

    def are_slower(self, now_us: Mapping[str, float]) -> bool:
        """Return whether a baseline takes much longer than at first."""
        return any(now > _SLOWED * self.baselines_us[name] for name, now in now_us.items())

    def time_again(self, names: Iterable[str]) -> Mapping[str, float]:
        """Return the times of these baselines in microseconds; the caller has the device alone."""
        return self.baselines.time(self.fresh, names)

    def is_near(
        self, inputs: Inputs, outputs: Sequence[torch.Tensor], precision: Precision
    ) -> bool:
        """Return whether outputs on fresh inputs are, at a glance, as right as the class asks.

        Never where the problem prescribes bounds: these need a look at every element.
        """
        if self.problem.checks.prescribes:
            return False
        strict, truths = self.runs.run("fp32", inputs), self.from_problem.truths
        return all(
            near(out, expected, truth.bounds[precision])
            for out, (_, expected), truth in zip(outputs, strict, truths, strict=True)
        )

    def mend_inputs(self) -> bool:
        """Restore inputs that a candidate changed; return whether there were any."""
        changed = {s.name: s for s in self.sets if not s.intact()}
        if changed:
            for original in self.truths.inputs:
                if original.name in changed:
                    changed[original.name].restore(original.inputs)
        return bool(changed)

    def facts(self) -> WorkloadFacts:
        """Return the facts about the workload."""
        return WorkloadFacts(
            name=self.name,
            input_sets=tuple(s.name for s in self.sets),
            outputs=self.output_forms,
            inputs=self.input_forms,
            baselines_us=self.baselines_us,
            roofline=self.roofline.facts() if self.roofline else None,
        )

    def _roofline(self) -> RooflineModel | None:
        try:
            with self.runs.scope("fp32"):
                work = work_of(self._instance, self.from_problem.inputs, self.runs.precision)
            clock, precision = clock_for(self.problem.device), self.runs.precision
            peaks = measure_peaks(self.problem.device, clock, work.bytes, precision)
        except (RuntimeError, TypeError, ValueError, MemoryError, BadProblemError) as error:
            self._notes.append(f"no roofline: {why_not_built(error)}")
            return None
        if not work.counted:
            self._notes.append(
                "the reference's operations cannot be counted: its roofline is the memory's"
            )
        return RooflineModel(work, peaks, precision)

    def _check_bounds(self) -> None:
        """Raise `BadProblemError` where PyTorch's own run misses a bound of the problem."""
        checks, name = self.problem.checks, f"{self.problem.name}.py"
        if not checks.prescribes:
            return
        own = f"PyTorch's own {self.runs.precision} run"
        outputs = self.runs.run(self.runs.precision, self.from_problem.inputs)
        for (path, out), truth in zip(outputs, self.from_problem.truths, strict=True):
            for tolerance in self.tolerances:
                share_met = share_within(out, truth, tolerance)
                if share_met < tolerance.matched:
                    raise BadProblemError(
                        f"{name}: {own} misses the tolerance of {tolerance.source} on {path}: "
                        f"{share_met:.2%} of its elements are within atol {tolerance.atol:g} and "
                        f"rtol {tolerance.rtol:g}"
                    )
            for likeness in checks.likenesses:
                if why := unlikeness(out, truth, likeness):
                    raise BadProblemError(f"{name}: {own} misses a bound: {why}")

    def _first_run(self, inputs: Inputs) -> list[NamedTensor]:
        """Return the outputs on the first own inputs, after checking that they can be verified."""
        name = f"{self.problem.name}.py"
        before = [fingerprint(t) for t in tensors_of(inputs)]
        outputs = self.runs.run("fp32", inputs)
        check_outputs(name, outputs, self._instance.device)
        if [fingerprint(t) for t in tensors_of(inputs)] != before:
            raise BadProblemError(
                f"{name}: forward() changes its inputs in place; work on a clone inside forward()"
            )
        again = self.runs.run("fp32", inputs, seed_offset=1)
        for (path, first), (_, second) in zip(outputs, again, strict=True):
            if deviation(second, exact(first)).norm > _RANDOM:
                raise BadProblemError(
                    f"{name}: {path} differs between two runs on the same inputs (dropout in "
                    "training mode, or random numbers in forward()); try --mode eval"
                )
        with self.runs.scope("fp32"):
            instance = self._instance
            holders = (instance.module, *instance.model.modules())
            is_random = draws_random(lambda: instance(inputs), instance.device, holders)
        if is_random:
            raise BadProblemError(
                f"{name}: forward() draws random numbers, however little they show in its output "
                "(dropout or dropped paths in training mode); try --mode eval"
            )
        if self.problem.device == "cpu":
            self._note_differences(outputs, again)
        return outputs

    def _note_differences(self, one: list[NamedTensor], other: list[NamedTensor]) -> None:
        """Note the outputs that two runs on the same inputs do not give bit for bit."""
        for (path, first), (_, second) in zip(one, other, strict=True):
            if fingerprint(first) != fingerprint(second):
                self._notes.append(
                    f"{path} is not the same in every bit in two runs on the same inputs: threads "
                    "sum in another order, or forward() makes a generator of random numbers"
                )
