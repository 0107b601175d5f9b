"""One process of a candidate in which its uses are tried, and the comparisons."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.uses import Outcome
from adaexplore.evaluate.judge.check import check_form
from adaexplore.evaluate.judge.conversation import Conversation
from adaexplore.evaluate.judge.load import first_call, form_of, load
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.uses.expected import BatchSet, Expected, Leaf
from adaexplore.evaluate.judge.verdict import DeviceUse
from adaexplore.evaluate.judge.verify import compare_first
from adaexplore.evaluate.timing.fresh import poison_all
from adaexplore.evaluate.truth.compare import Truth, deviation, exact
from adaexplore.evaluate.truth.precision import up_to
from adaexplore.evaluate.wire import messages as wire
from adaexplore.evaluate.wire import use_messages as ask
from adaexplore.evaluate.wire.tensors import SharedTensor
from adaexplore.sandbox.channel import MAX_FDS
from adaexplore.sandbox.user.values import NamedTensor

_Reply = TypeVar("_Reply")
_TRIAL_S = {"cpu": 20.0, "cuda": 60.0}  # a kernel may be compiled anew, for another size
NO_GRADIENT = "the outputs have no gradient, and no exception says so"


@dataclass(frozen=True, slots=True)
class Found:
    """The outcome of a trial, and what is wrong in one line."""

    outcome: Outcome
    detail: str = ""


HOLDS = Found("holds")


class UseProcess:
    """A candidate's process in which trials are made, and what they are compared with."""

    def __init__(self, reference: Reference, expected: Expected, talk: Conversation) -> None:
        self.reference = reference
        self.expected = expected
        self.talk = talk
        self.workload = expected.workload
        self.number = self.workload.first_set + self.workload.own_index
        self._sets = sum(len(workload.sets) for workload in reference.workloads)

    def begin(self, candidate: Candidate, device: DeviceUse) -> None:
        """Load the candidate and give it all weights; raises as an evaluation does."""
        with device.while_nobody_times():
            load(self.talk, self.reference, candidate)
            with device.hold(exclusive=False):
                first_call(self.talk)
        problem, other = self.reference.problem, self.reference.first.truths.other_weights
        with device.hold(exclusive=False):
            _, give_weights = compare_first(self.talk, self.reference)
        self._give_weights("own", self.reference.parameters)
        if other:
            self._give_weights("other", other.parameters)
        self.talk.ask(
            ask.HowToBuild(
                problem.seed, other.seed if other else problem.seed, problem.mode, give_weights
            )
        )

    def try_own(self, part: ask.Part) -> Found | None:
        """Compare with the truth under the reference's weights."""
        return self._try(part, self.workload.from_problem.truths)

    def try_other(self, part: ask.Part) -> Found | None:
        """Compare with the truth under other weights."""
        other = self.workload.truths.other_weights
        return self._try(part, other.truths) if other else None

    def try_moved(self) -> Found | None:
        """Compare a model that was constructed on the CPU."""
        moved = self.expected.moved
        if moved is None:
            return None
        self._give_weights("moved", moved.parameters)
        return self._try("moved", moved.truths)

    def try_batch(self, batch: BatchSet | None) -> Found | None:
        """Compare on another batch size."""
        if batch is None:
            return None
        self.talk.give(wire.TakeBuffers, batch.buffers)
        self.talk.give(wire.TakeInputs, batch.shared, form=form_of(batch.inputs))
        self._sets += 1
        forms = [(t.path, b.tensor) for t, b in zip(batch.truths, batch.buffers, strict=True)]
        poison_all(batch.buffers)
        tried = self._make(ask.TryUse("call", self._sets - 1))
        return self._compared(tried.outputs, forms, batch.buffers, batch.truths)

    def try_gradients(self, leaves: Sequence[Leaf]) -> Found | None:
        """Compare gradients, of the parameters and of inputs."""
        if not leaves:
            return None
        poison_all(self.workload.buffers)
        self._give_in_parts(ask.TakePlaces, [leaf.place for leaf in leaves])
        numbers = tuple(each.leaf for each in leaves if isinstance(each.leaf, int))
        names = tuple(each.leaf for each in leaves if isinstance(each.leaf, str))
        tried = self._make(ask.TryGradients(self.number, numbers, names))
        found = self._compared(
            tried.outputs,
            self.workload.outputs,
            self.workload.buffers,
            self.workload.from_problem.truths,
        )
        if found.outcome != "holds":
            return found
        states = list(zip(leaves, tried.leaves, strict=True))
        lost = [leaf for leaf, state in states if state == "missing"]
        if lost:
            return Found("detached", f"{_of(lost[0])} is None" if tried.attached else NO_GRADIENT)
        for leaf, state in states:
            error = deviation(leaf.place.tensor, exact(leaf.value)).norm
            if state == "given" and leaf.bound is not None and not error <= leaf.bound:
                return Found("wrong", f"{_of(leaf)} is off by {error:.2g} (relative)")
        return HOLDS

    def _try(self, part: ask.Part, truths: Sequence[Truth]) -> Found | None:
        poison_all(self.workload.buffers)
        tried = self._make(ask.TryUse(part, self.number))
        if not tried.applies:
            return None
        return self._compared(tried.outputs, self.workload.outputs, self.workload.buffers, truths)

    def _make(self, trial: wire.Request[_Reply]) -> _Reply:
        """Make a trial, which has time of its own."""
        kind = self.reference.problem.device.partition(":")[0]
        self.talk.deadline = time.monotonic() + _TRIAL_S[kind]
        return self.talk.ask(trial)

    def _compared(
        self,
        described: Sequence[wire.OutputDescription],
        forms: Sequence[NamedTensor],
        buffers: Sequence[SharedTensor],
        truths: Sequence[Truth],
    ) -> Found:
        """Compare outputs with the truths; raise `Stop` for outputs of another form."""
        check_form(described, forms)
        asked = self.workload.runs.precision
        for truth, buffer in zip(truths, buffers, strict=True):
            found = truth.deviation(buffer.tensor)
            precision = truth.classify(found)
            if precision is None or precision not in up_to(asked):
                return Found("wrong", f"{truth.path} is off by {found.norm:.2g} (relative)")
        return HOLDS

    def _give_weights(self, whose: ask.Whose, weights: Mapping[str, SharedTensor]) -> None:
        names = list(weights)
        for start in range(0, len(names), MAX_FDS):
            part = names[start : start + MAX_FDS]
            tensors = [weights[name] for name in part]
            self.talk.give(ask.TakeWeights, tensors, whose=whose, names=tuple(part))

    def _give_in_parts(self, kind: type[ask.TakePlaces], tensors: Sequence[SharedTensor]) -> None:
        for start in range(0, len(tensors), MAX_FDS):
            self.talk.give(kind, tensors[start : start + MAX_FDS])


def _of(leaf: Leaf) -> str:
    return f"the gradient of {leaf.leaf if isinstance(leaf.leaf, str) else 'an input'}"
