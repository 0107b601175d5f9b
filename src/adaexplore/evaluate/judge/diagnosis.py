"""After a candidate has passed: what it spends its time on, and whether its own kernels matter."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.evaluation import Profile
from adaexplore.core.problem import Precision
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.kernels.profile import DECOY_SHARE, read_profile
from adaexplore.evaluate.timing.fresh import poison_all
from adaexplore.evaluate.truth.precision import up_to
from adaexplore.evaluate.truth.truth import CheckedSet
from adaexplore.evaluate.wire.tensors import SharedTensor
from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.watchdog import LimitExceededError

_PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A profile with its labels, or a `note` on why there is none."""

    profile: Profile | None = None
    labels: tuple[str, ...] = ()
    note: str = ""

    def objection(self) -> str | None:
        """Why this is no result where own kernels are required; None if it is one."""
        if self.profile is None:
            return f"its own kernels could not be seen: {self.note}"
        if "decoy" in self.labels:
            return "its result is the same without its own kernels"
        share = self.profile.custom_share
        if share >= DECOY_SHARE:
            return None
        return f"its own kernels take {100 * share:.2g} % of the device time"


def diagnose(
    talk: Conversation, reference: Reference, candidate: Candidate, buffers: list[SharedTensor]
) -> Diagnosis:
    """Profiles a candidate that has passed; whatever goes wrong here is no fault of its.

    Its process has to be given a new deadline afterwards, and may have ended.
    """
    talk.stage = "being profiled"
    talk.deadline = time.monotonic() + _PATIENCE_S
    problem = reference.problem
    try:
        reply = talk.ask({"op": "profile", "device": problem.device})
        found = read_profile(reply, candidate.source, problem.language)
        if found is None:
            return Diagnosis(note="its process sent no profile")
        labels = found.labels
        own = any(use.origin == "custom" for use in found.profile.kernels)
        if problem.device != "cpu" and own and _is_decoy(talk, reference, buffers):
            labels = ("decoy", *labels)
    except Stop as trouble:
        return Diagnosis(note=trouble.verdict.reason)
    except (TimeoutError, WorkerDiedError, LimitExceededError) as trouble:
        return Diagnosis(note=f"{trouble or type(trouble).__name__}, while {talk.stage}")
    return Diagnosis(found.profile, labels)


def _is_decoy(talk: Conversation, reference: Reference, buffers: list[SharedTensor]) -> bool:
    """Whether the results are right although none of its Triton kernels was launched.

    What a call before may have left in persistent buffers is the result of other inputs, whose
    truth would be wrong here; where no two input sets differ so, nothing can be said.
    """
    pair = _telling_pair(reference.sets, reference.precision)
    if pair is None:
        return False
    before, here = pair
    talk.stage = "running without its own kernels"
    talk.ask({"op": "run", "set": before})
    poison_all(buffers)
    try:
        reply = talk.ask({"op": "run_unlaunched", "set": here})
    except Stop:  # it fails without them: they matter
        return False
    suppressed = reply.get("suppressed")
    if not isinstance(suppressed, int) or suppressed == 0:
        return False  # they are launched in some other way, which nobody kept from happening
    results = [shared.tensor for shared in buffers]
    return _is_right(results, reference.sets[here], reference.precision)


def _telling_pair(sets: Sequence[CheckedSet], precision: Precision) -> tuple[int, int] | None:
    """Two input sets of which the first one's results are wrong for the second."""
    for i, other in enumerate(sets[1:], 1):
        results = [truth.value for truth in other.truths]
        if not _is_right(results, sets[0], precision):
            return i, 0
    return None


def _is_right(results: Sequence[torch.Tensor], checked: CheckedSet, precision: Precision) -> bool:
    return all(
        truth.classify(truth.deviation(result)) in up_to(precision)
        for result, truth in zip(results, checked.truths, strict=True)
    )
