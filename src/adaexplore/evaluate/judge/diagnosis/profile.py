"""Diagnosing a correct candidate: its profile, and a test that its own kernels matter."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Precision
from adaexplore.core.verdict.evaluation import Profile
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.kernels.profile import DECOY_SHARE, read_profile
from adaexplore.evaluate.timing.fresh import poison_all
from adaexplore.evaluate.truth.precision import up_to
from adaexplore.evaluate.truth.truth import CheckedSet
from adaexplore.evaluate.wire import messages as wire
from adaexplore.evaluate.wire.kernel_messages import ProfileCalls, RunUnlaunched
from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.user.user_code import is_out_of_memory
from adaexplore.sandbox.watchdog import LimitExceededError

_PATIENCE_S = 20.0
_TROUBLE = (Stop, TimeoutError, WorkerDiedError, LimitExceededError)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A profile with its labels; a `note` says why there is none, or what could not be tried."""

    profile: Profile | None = None
    labels: tuple[str, ...] = ()
    note: str = ""

    @property
    def has_own_kernels(self) -> bool:
        """Whether the profile has kernels of the candidate's own."""
        kernels = self.profile.kernels if self.profile else ()
        return any(use.origin == "custom" for use in kernels)

    def objection(self) -> str | None:
        """Return the objection where own kernels are required, None if there is none."""
        if self.profile is None or self.note:
            return f"its own kernels could not be seen: {self.note}"
        if "decoy" in self.labels:
            return "its result is the same without its own kernels"
        share = self.profile.custom_share
        if share >= DECOY_SHARE:
            return None
        return f"its own kernels take {100 * share:.2g} % of the device time"


def profiled(talk: Conversation, reference: Reference, candidate: Candidate) -> Diagnosis:
    """Profile a candidate that has passed, on the first timed workload; the caller has the device.

    A failure here is a note, no fault of the candidate's. Its process needs a new deadline
    afterwards, and may have ended.
    """
    talk.stage = "being profiled"
    talk.deadline = time.monotonic() + _PATIENCE_S
    problem, workload = reference.problem, reference.timed[0]
    try:
        reply = talk.ask(ProfileCalls(problem.device, workload.set_numbers))
        found = read_profile(reply, candidate.source, problem.language)
    except _TROUBLE as trouble:
        return Diagnosis(note=_told(talk, trouble))
    if found is None:
        return Diagnosis(note="its process sent no profile")
    return Diagnosis(found.profile, found.labels)


def with_decoys_labelled(talk: Conversation, reference: Reference, found: Diagnosis) -> Diagnosis:
    """Return the diagnosis, with a label where the own kernels of the candidate do nothing.

    That takes a second or more, in which others may use the device too.
    """
    try:
        if is_decoy(talk, reference.timed[0]):
            return replace(found, labels=("decoy", *found.labels))
    except _TROUBLE as trouble:
        return replace(found, note=_told(talk, trouble))
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return replace(found, note=f"the judge had too little memory while {talk.stage}")
    return found


def _told(talk: Conversation, trouble: Exception) -> str:
    if isinstance(trouble, Stop):
        return trouble.verdict.reason
    return f"{str(trouble) or type(trouble).__name__}, while {talk.stage}"


def is_decoy(talk: Conversation, workload: JudgedWorkload) -> bool:
    """Return whether the results are right with none of the candidate's Triton kernels launched.

    Persistent buffers may hold the result of the call before. That call is on inputs whose truth
    is wrong here; where no two input sets differ so, the answer is no.
    """
    precision = workload.runs.precision
    pair = _telling_pair(workload.sets, precision)
    if pair is None:
        return False
    before, here = pair
    talk.stage = "running without its own kernels"
    talk.ask(wire.RunOn(workload.first_set + before))
    poison_all(workload.buffers)
    try:
        reply = talk.ask(RunUnlaunched(workload.first_set + here))
    except Stop:  # it fails without them: they matter
        return False
    if reply.suppressed == 0:
        return False  # they are launched in some other way, which was not suppressed
    results = [shared.tensor for shared in workload.buffers]
    return _is_right(results, workload.sets[here], precision)


def _telling_pair(sets: Sequence[CheckedSet], precision: Precision) -> tuple[int, int] | None:
    """Return two input sets where the results of the first are wrong for the second."""
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
