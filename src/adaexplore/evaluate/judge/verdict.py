"""One candidate's evaluation: load it in its own process, verify, measure, decide."""

from __future__ import annotations

import base64
import math
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.evaluation import Failed, Mismatch, Passed, Roofline, Timing
from adaexplore.core.problem import PRECISIONS, Precision
from adaexplore.evaluate.judge.conversation import Conversation, Stop, check_form
from adaexplore.evaluate.judge.diagnosis import diagnose
from adaexplore.evaluate.judge.failures import COMPILING, LOADING, died, overran
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.timed import ParentLostError, TimedCandidate, TimedParent, is_busy
from adaexplore.evaluate.judge.worker import Slot
from adaexplore.evaluate.kernels.describe import (
    OwnKernels,
    code_of_candidate,
    describe,
    measured_parts,
    read_launched,
    traffic,
)
from adaexplore.evaluate.kernels.extensions import BUILD_S
from adaexplore.evaluate.timing.audit import IDLE_KERNELS
from adaexplore.evaluate.timing.conditions import gauge_for
from adaexplore.evaluate.timing.fresh import poison_all
from adaexplore.evaluate.timing.measure import CANDIDATE, PARENT, effort_for, measure
from adaexplore.evaluate.truth.compare import Truth
from adaexplore.evaluate.truth.mismatch import find_mismatch
from adaexplore.evaluate.truth.precision import up_to
from adaexplore.evaluate.wire.tensors import SharedTensor
from adaexplore.languages import DIALECTS
from adaexplore.languages.fingerprint import fingerprint
from adaexplore.sandbox.channel import MAX_FDS
from adaexplore.sandbox.device_lock import device_lock
from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.values import Inputs, map_tensors
from adaexplore.sandbox.watchdog import LimitExceededError

_OTHERS = "other programs keep the GPU busy: nothing can be timed on it; end them and go on"

_Result = TypeVar("_Result")


def decided(run: Callable[[], _Result], talk: Conversation, timeout_s: float) -> _Result | Failed:
    """What `run` returns, or the verdict that ends it early."""
    try:
        return run()
    except Stop as stop:
        return stop.verdict
    except TimeoutError:
        return Failed("timeout", f"not done after {timeout_s:g} s, while {talk.stage}")
    except WorkerDiedError as error:
        return died(error, talk.stage)
    except LimitExceededError as error:
        return overran(error, talk.stage)


class CandidateRun:
    """The evaluation of one candidate, step by step.

    `measured` holds earlier results by their `Descriptor.code`.
    """

    def __init__(
        self,
        reference: Reference,
        buffers: list[Any],
        candidate: Candidate,
        talk: Conversation,
        best_us: float = math.inf,
        measured: Mapping[str, Passed] = MappingProxyType({}),
    ) -> None:
        self._reference = reference
        self._buffers = buffers
        self._candidate = candidate
        self._talk = talk
        self._best_us = best_us
        self._measured = measured
        self.parent: Conversation | None = None
        self.parent_lost = False
        self._taken: Precision = PRECISIONS[0]
        self._error = 0.0
        self._labels: list[str] = []
        self._needs_weights = False
        self._layouts: list[list[int]] = []
        self.device_s = 0.0

    def verdict(self) -> Passed:
        """Passed, or `Stop`, `TimeoutError`, `WorkerDiedError`."""
        with self._disturbing_nobody():
            self._load()
        with self._on_device(exclusive=False):
            self._verify()
            self._verify_other_weights()
        own = self._own_kernels()
        same = self._measured.get(code_of_candidate(self._candidate.source, own))
        if same and same.precision == self._taken:
            self._inspect()
            return self._taken_over(same)
        with self._on_device(exclusive=True):
            timing = self._measure()
        self._inspect()
        roofline = self._hold_against_roofline(timing)
        with self._on_device(exclusive=False):
            found = diagnose(self._talk, self._reference, self._candidate, self._buffers)
        objection = found.objection() if self._reference.problem.checks.require_custom else None
        if objection:
            raise Stop(Failed("rejected", objection))
        return Passed(
            self._taken,
            self._error,
            timing,
            detail=f"no profile: {found.note}" if found.note else "",
            labels=(*self._labels, *found.labels),
            profile=found.profile,
            roofline=roofline,
            descriptor=describe(
                self._candidate.source, own, measured_parts(found.profile), traffic(roofline)
            ),
        )

    def _own_kernels(self) -> OwnKernels:
        """What it has launched so far, which is all that a call launches."""
        try:
            return read_launched(self._talk.ask({"op": "launched"}))
        except Stop:  # what it did to its cache is no fault
            return OwnKernels()

    def _taken_over(self, same: Passed) -> Passed:
        """The measurement of one that compiles to the same, for outputs that were right here too.

        It could have forged its code, and gains a time that is not the best (docs/evaluator.md).
        """
        assert same.descriptor
        assert same.measured
        return replace(
            same,
            error=self._error,
            timing=replace(same.measured, parent=None),
            labels=tuple(dict.fromkeys((*self._labels, *same.labels))),
            descriptor=replace(same.descriptor, form=fingerprint(self._candidate.source)),
        )

    def _load(self) -> None:
        """Imports, constructs and compiles: everything up to the end of a first call."""
        reference, problem, talk = self._reference, self._reference.problem, self._talk
        if problem.device != "cpu":
            self._compile_ahead()
        talk.stage = LOADING
        reply = talk.ask(
            {
                "op": "load",
                "source": self._candidate.source,
                "device": problem.device,
                "seed": problem.seed,
                "mode": problem.mode,
                "precision": reference.precision,
                "init": _pickled(reference.instance.init),
                "access": problem.access.to_json(),
            },
        )
        if reply["changed_flags"]:  # the process puts them back before any call
            self._labels.append("sets-global-flags")
        talk.stage = "receiving its inputs"
        for checked in reference.sets:
            talk.ask({"op": "inputs", "form": _form(checked.inputs)}, checked.shared)
        talk.ask({"op": "outputs"}, self._buffers)
        self._give_slots()
        self._inspect()
        talk.stage = "its first call"
        with self._on_device(exclusive=False):
            talk.ask({"op": "run", "set": 0})

    def _compile_ahead(self) -> None:
        """Has its kernels compiled while the GPU is somebody else's."""
        reference, problem = self._reference, self._reference.problem
        request = {
            "source": self._candidate.source,
            "capability": torch.cuda.get_device_capability(problem.device),
            "seed": problem.seed,
            "mode": problem.mode,
            "init": _pickled(reference.instance.init),
            "access": problem.access.to_json(),
            "inputs": _pickled(map_tensors(_without_data, reference.sets[0].inputs)),
        }
        self._talk.stage = COMPILING
        if DIALECTS[problem.language].built_ahead:
            self._build(request | {"op": "build"})
        else:
            self._talk.ask(request | {"op": "ahead"})

    def _build(self, request: dict[str, Any]) -> None:
        """Has its extensions built, within a time limit of their own."""
        started, left_s = time.monotonic(), self._talk.deadline - time.monotonic()
        self._talk.deadline = started + BUILD_S
        try:
            self._talk.ask(request)
        except TimeoutError as error:
            raise Stop(Failed("timeout", f"not built after {BUILD_S:g} s")) from error
        self._talk.deadline = time.monotonic() + left_s

    def _give_parameters(self, parameters: Mapping[str, SharedTensor]) -> None:
        names = list(parameters)
        for some in (names[i : i + MAX_FDS] for i in range(0, len(names), MAX_FDS)):
            tensors = [parameters[name] for name in some]
            self._talk.ask({"op": "parameters", "names": some}, tensors)

    def _give_slots(self) -> None:
        """Memory for the calls that are timed, each on inputs of its own."""
        fresh = self._reference.fresh
        rings = [r.memory for r in (*fresh.rings, *fresh.withheld.rings, *fresh.out_rings)]
        slots = {"op": "slots", "count": fresh.count, "inputs": len(fresh.rings)}
        self._talk.ask(slots | {"form": _form(fresh.slots[0])}, rings)

    def _verify(self) -> None:
        for index in range(len(self._reference.sets)):
            self._verify_set(index)

    def _verify_set(self, index: int) -> None:
        if index:
            self._compare_on(index)
        else:
            self._settle_on_weights()

    def _settle_on_weights(self) -> None:
        """The first comparison: with weights as made under the reference's seed, else with its own.

        To give it the reference's at once would undo what a constructor folds into a parameter.
        """
        reference = self._reference
        if reference.problem.weights:  # no seed makes these
            self._needs_weights = True
            self._compare_with_given_weights()
            return
        try:
            self._compare_on(0)
        except Stop as stop:
            as_made = stop.verdict
        else:
            return
        if as_made.status != "wrong_output" or not reference.parameters:
            raise Stop(as_made)
        self._taken, self._error, self._needs_weights = PRECISIONS[0], 0.0, True
        try:
            self._compare_with_given_weights()
        except Stop as stop:
            raise Stop(min(as_made, stop.verdict, key=_distance)) from stop
        except (TimeoutError, WorkerDiedError, LimitExceededError) as error:
            raise Stop(as_made) from error

    def _compare_with_given_weights(self) -> None:
        problem = self._reference.problem
        self._talk.ask({"op": "rebuild", "seed": problem.seed, "mode": problem.mode})
        self._give_parameters(self._reference.parameters)
        self._talk.ask({"op": "run", "set": 0})
        self._compare_on(0)

    def _compare_on(self, index: int) -> None:
        """Compares the output on a set after the call on the next one has been made."""
        sets = self._reference.sets
        self._talk.stage = f"running on the inputs {sets[index].name!r}"
        poison_all(self._buffers)
        reply = self._talk.ask({"op": "run", "set": (index + 1) % len(sets)})
        self._check(reply, sets[index].truths, sets[index].name)

    def _verify_other_weights(self) -> None:
        """Has it construct a second model as the reference's was, under a seed of its own."""
        reference, talk = self._reference, self._talk
        other = reference.truths.other_weights
        if other is None:
            return
        talk.stage = "running with other weights"
        index = next(i for i, s in enumerate(reference.sets) if s.own)
        talk.ask({"op": "rebuild", "seed": other.seed, "mode": reference.problem.mode})
        if self._needs_weights:
            self._give_parameters(other.parameters)
        talk.ask({"op": "run", "set": index})
        poison_all(self._buffers)
        reply = talk.ask({"op": "run", "set": index})
        self._check(reply, other.truths, f"{reference.sets[index].name}, with other weights")
        talk.ask({"op": "restore"})

    def _measure(self) -> Timing:
        self._talk.stage = "being timed"
        objection = None
        for _ in range(2):  # the machine's mood does not come twice, a cheat does
            delivery_us = self._reference.delivery.extra_us(self._layouts)
            timed = TimedCandidate(self._talk, self._reference, self._check_timed, delivery_us)
            gauge = gauge_for(self._reference.problem.device)
            gauge.start()
            timing = self._timed_beside(timed, self.parent) or self._timed_beside(timed, None)
            objection = timed.objection()
            if timing and objection is None:
                return replace(timing, conditions=gauge.read())
        if objection == IDLE_KERNELS:
            self._talk.end()
            if is_busy(self._reference.problem.device):
                raise Stop(Failed("infra_error", _OTHERS))
        raise Stop(Failed("rejected", objection or ""))

    def _timed_beside(self, timed: TimedCandidate, parent: Conversation | None) -> Timing | None:
        """The timing, with the parent among the parties; None if the parent is lost meanwhile."""
        reference = self._reference
        parties = {CANDIDATE: timed.block} | reference.baselines.blocks(reference.fresh)
        beside = TimedParent(parent, reference) if parent else None
        if beside:
            parties[PARENT] = beside.block
        try:
            brief = reference.brief and parent is None
            effort = effort_for(reference.problem.device, brief=brief)
            most = reference.fresh.count
            return measure(parties, effort, most_calls=most, best_us=self._best_us)
        except ParentLostError:
            self.parent, self.parent_lost = None, True
            return None
        finally:
            if beside:
                beside.end()

    def _hold_against_roofline(self, timing: Timing) -> Roofline | None:
        """How near it comes to what the device allows; `Stop` where it comes nearer than that."""
        light = self._reference.light
        if light is None:
            return None
        objection = light.objection(timing.time_us)
        if objection:
            raise Stop(Failed("rejected", objection))
        self._labels.extend(light.labels(timing.time_us))
        return light.roofline(timing.time_us)

    def _inspect(self) -> None:
        """Asks what the candidate's code has changed in its process."""
        found = self._talk.ask({"op": "inspect"})
        if found["replaced"]:
            reason = f"it replaces {', '.join(found['replaced'][:3])}; leave PyTorch and Python be"
            raise Stop(Failed("rejected", reason))
        if found["meddled"]:
            reason = f"forward() changes {', '.join(found['meddled'][:3])} for the whole process"
            raise Stop(Failed("rejected", reason))

    def _check(self, reply: dict[str, Any], truths: Sequence[Truth], where: str) -> None:
        """Compares what stands in the buffers with the truth; `Stop` if it is wrong."""
        check_form(reply["outputs"], self._reference.outputs)
        self._layouts = [out["strides"] for out in reply["outputs"]]
        for shared, truth in zip(self._buffers, truths, strict=True):
            self._check_output(shared.tensor, truth, where)

    def _check_timed(self, index: int, outputs: list[torch.Tensor]) -> None:
        """Compares the outputs of a timed call; closely only where a glance does not settle it."""
        original = self._reference.fresh.original(index)
        if original is None:
            raise Stop(Failed("wrong_output", "forward() changes its inputs in place"))
        if self._reference.is_near(original, outputs, self._taken):
            return
        for out, truth in zip(outputs, self._reference.truths.of(original), strict=True):
            self._check_output(out, truth, "fresh inputs, while being timed")

    def _check_output(self, out: torch.Tensor, truth: Truth, where: str) -> None:
        found = truth.deviation(out)
        if truth.own:
            self._error = max(self._error, found.norm)
        reached = truth.classify(found)
        if reached is None or reached not in up_to(self._reference.precision):
            loosest = max(truth.bounds, key=PRECISIONS.index)  # of those up to the class asked for
            bound = truth.bounds[loosest]
            reason = (
                f"{truth.path} is off by {found.norm:.2g} (relative, against float64); "
                f"{loosest} allows {bound.norm:.2g}"
            )
            if found.norm <= bound.norm:
                reason = (
                    f"{truth.path} is right on average, but one element is off by "
                    f"{found.element:.2g} of the output's scale; "
                    f"{loosest} allows {bound.element:.2g}"
                )
            if loosest != self._reference.precision:
                reason += f" (here {self._reference.precision} would pass outputs without the work)"
            mismatch = self._mismatch(out, truth, where)
            reason += f"; {mismatch.pattern}" if mismatch.pattern else ""
            raise Stop(Failed("wrong_output", reason, error=found.norm, feedback=mismatch))
        if PRECISIONS.index(reached) > PRECISIONS.index(self._taken):
            self._taken = reached

    def _mismatch(self, out: torch.Tensor, truth: Truth, where: str) -> Mismatch:
        others = {
            checked.name: other.value
            for checked in self._reference.sets
            for other in checked.truths
            if other.path == truth.path and other is not truth
        }
        ties = truth.excused(out)
        return find_mismatch(
            out, truth.value, output=truth.path, inputs=where, others=others, ties=ties
        )

    @contextmanager
    def _disturbing_nobody(self) -> Iterator[None]:
        """On the CPU, where compiling costs whoever measures: only while nobody does."""
        if self._reference.problem.device != "cpu":
            yield
            return
        asked = time.monotonic()
        with device_lock("cpu", exclusive=False):
            self._talk.deadline += time.monotonic() - asked
            yield

    @contextmanager
    def _on_device(self, *, exclusive: bool) -> Iterator[None]:
        """Holds the device's lock and books the time it was held."""
        asked = time.monotonic()
        with device_lock(self._reference.problem.device, exclusive=exclusive):
            since = time.monotonic()
            self._talk.deadline += since - asked  # the candidate is not to blame for the queue
            try:
                yield
            finally:
                self.device_s += time.monotonic() - since


def _form(inputs: Inputs) -> str:
    """Arguments with every tensor replaced by its number, as text."""
    count = 0

    def to_slot(_: torch.Tensor) -> Any:
        nonlocal count
        count += 1
        return Slot(count - 1)

    return _pickled(map_tensors(to_slot, inputs))


def _distance(verdict: Failed) -> float:
    return math.inf if verdict.error is None else verdict.error


def _without_data(tensor: torch.Tensor) -> torch.Tensor:
    shape, strides = tensor.shape, tensor.stride()
    return torch.empty_strided(shape, strides, dtype=tensor.dtype, device="meta")


def _pickled(value: Any) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()
