"""Times of candidates that compile to the code of an earlier one, as their own process says."""

from __future__ import annotations

from adaexplore.core.verdict.evaluation import Passed, Timing
from adaexplore.evaluate.judge.conversation import Conversation
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.timed import TimedCandidate
from adaexplore.evaluate.judge.verify import VerifiedCandidate

_SAME = 1.25


def has_time_of(
    talk: Conversation, reference: Reference, verified: VerifiedCandidate, same: Passed
) -> bool:
    """Return whether a candidate is about as fast as an earlier one; the caller holds the device.

    A few blocks show it, where a measurement would take many. Raises `Stop` for a wrong output.
    """
    known = {w.name: w.timing for w in same.workloads} or {reference.timed[0].name: same.timing}
    for workload in reference.timed:
        timing = known[workload.name]
        assert isinstance(timing, Timing)
        layout = verified.layouts[workload.name]
        timed = TimedCandidate(talk, workload, verified.reached, layout)
        time_us = timed.brief_us(timing.time_us)
        if timed.objection() or time_us > _SAME * timing.time_us:
            return False
    return True
