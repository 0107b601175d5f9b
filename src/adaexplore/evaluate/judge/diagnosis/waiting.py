"""Kernels whose blocks wait for other blocks: their label, and a trial on a partly held GPU."""

from __future__ import annotations

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.labels import WAITS_BY_LEAVE, WAITS_FOR_BLOCKS
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.wire.kernel_messages import RunOccupied
from adaexplore.languages.waiting import waiting_kernels

_HOLD_S = 0.5


def waiting_labels(problem: Problem, candidate: Candidate) -> tuple[str, ...]:
    """Label kernels that wait for other blocks of a launch that is not cooperative."""
    if not waiting_kernels(candidate.source):
        return ()
    return (WAITS_BY_LEAVE if problem.checks.allow_waiting else WAITS_FOR_BLOCKS,)


def waiting_note(talk: Conversation, reference: Reference, candidate: Candidate) -> str:
    """Name the kernels that wait, and how they fare on a GPU that is half held.

    The caller holds the device. Empty where no kernel waits.
    """
    names = ", ".join(waiting_kernels(candidate.source))
    if not names:
        return ""
    if reference.problem.device == "cpu":
        return f"{WAITS_FOR_BLOCKS}: {names}"
    talk.stage = "running on a GPU that is half held"
    try:
        workload = reference.timed[0]
        request = RunOccupied(reference.problem.device, workload.first_set, _HOLD_S)
        fares = "ends" if talk.ask(request).in_time else "does not end"
    except Stop as stop:
        return f"{WAITS_FOR_BLOCKS}: {names}; not tried on a GPU that is half held: {stop}"
    return f"{WAITS_FOR_BLOCKS}: {names} {fares} while half of the GPU is held"
