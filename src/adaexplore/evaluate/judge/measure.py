"""Measuring a correct candidate on every timed workload."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from adaexplore.core.verdict.evaluation import Failed, Roofline, Timing, WorkloadTiming
from adaexplore.evaluate.judge.check import Reached
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.live_parents import LiveParent
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.timed import (
    ParentLostError,
    TimedCandidate,
    TimedParent,
    comes_to_rest,
)
from adaexplore.evaluate.judge.verify import VerifiedCandidate
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.timing.audit import IDLE_KERNELS
from adaexplore.evaluate.timing.conditions import gauge_for
from adaexplore.evaluate.timing.cpu_time import waited_us
from adaexplore.evaluate.timing.measure import (
    CANDIDATE,
    PARENT,
    MeasuringEffort,
    effort_for,
    measure,
)

_USUAL = 2  # baselines beside a candidate
_BUSY = "other programs keep the GPU busy: nothing can be timed on it; end them and go on"


@dataclass(frozen=True, slots=True)
class Measured:
    """The timing of each timed workload, by name, and how right the timed calls were."""

    timings: Mapping[str, Timing]
    reached: Reached


def measure_candidate(
    talk: Conversation,
    reference: Reference,
    verified: VerifiedCandidate,
    parent: LiveParent | None,
    best_us: Mapping[str, float],
    *,
    every_baseline: bool,
) -> Measured:
    """Time a candidate, beside its parent if that is alive; the caller holds the device.

    The strongest baselines are timed with it, or every one. `best_us` has the best time known of
    any other candidate by workload. Raises `Stop` where the times cannot be believed or a timed
    output is wrong.
    """
    baselines = reference.every if every_baseline else reference.beside
    talk.stage = "being timed"
    timings: dict[str, Timing] = {}
    reached = verified.reached
    for workload in reference.timed:
        best = best_us.get(workload.name, math.inf)
        for last_try in (False, True):  # noise of the machine does not come twice, a cheat does
            layout = verified.layouts[workload.name]
            timed = TimedCandidate(talk, workload, reached, layout)
            rivals = _Rivals(workload, baselines, parent, best)
            timing, objection = _timed(timed, rivals, reference)
            reached = reached.or_worse(timed.reached)
            if objection is None:
                timings[workload.name] = timing
                break
            if last_try:
                raise Stop(_disbelieved(talk, reference, objection))
    return Measured(timings, reached)


def rooflines(reference: Reference, timings: Mapping[str, Timing]) -> dict[str, Roofline]:
    """Hold times against the roofline, by workload; raise `Stop` for an impossible time."""
    found = {}
    for workload in reference.timed:
        model, time_us = workload.roofline, timings[workload.name].time_us
        if model is None:
            continue
        objection = model.objection(time_us)
        if objection:
            raise Stop(Failed("rejected", objection))
        found[workload.name] = model.roofline(time_us)
    return found


def roofline_labels(reference: Reference, timings: Mapping[str, Timing]) -> tuple[str, ...]:
    """Label times below what the work of the reference takes."""
    labels = (
        label
        for workload in reference.timed
        if workload.roofline
        for label in workload.roofline.labels(timings[workload.name].time_us)
    )
    return tuple(dict.fromkeys(labels))


def workload_timings(
    timings: Mapping[str, Timing], rooflines: Mapping[str, Roofline]
) -> tuple[WorkloadTiming, ...]:
    """Return the timing of each workload; empty where there is one, which is the summary."""
    if len(timings) == 1:
        return ()
    return tuple(
        WorkloadTiming(name, timing, rooflines.get(name)) for name, timing in timings.items()
    )


@dataclass(frozen=True, slots=True)
class _Rivals:
    """The other parties of a measurement on one workload, and the best time known of any other."""

    workload: JudgedWorkload
    baselines: Sequence[str]
    parent: LiveParent | None
    best_us: float


def _timed(
    timed: TimedCandidate, rivals: _Rivals, reference: Reference
) -> tuple[Timing, str | None]:
    """Time the candidate on one workload; return also the objection to its times, if any."""
    gauge = gauge_for(reference.problem.device)
    gauge.start()
    timing = None
    if rivals.parent and not rivals.parent.lost:
        timing = _timed_beside(timed, rivals, reference)
    if timing is None:
        timing = _timed_beside(timed, replace(rivals, parent=None), reference)
    assert timing is not None  # only a parent is lost
    return replace(timing, conditions=gauge.read()), timed.objection()


def _timed_beside(timed: TimedCandidate, rivals: _Rivals, reference: Reference) -> Timing | None:
    """Return the timing, the parent among the parties; None if the parent is lost meanwhile."""
    workload, parent = rivals.workload, rivals.parent
    blocks = workload.baselines.blocks(workload.fresh, rivals.baselines)
    parties = {CANDIDATE: timed.block} | blocks
    pids = [os.getpid(), timed.pid]
    beside = TimedParent(parent.talk, workload) if parent else None
    if parent:
        pids.append(parent.talk.pid)
    if beside:
        parties[PARENT] = beside.block
    effort = _effort(reference, len(blocks), brief=reference.brief and parent is None)
    try:
        return measure(
            parties,
            effort,
            most_calls=workload.fresh.count,
            best_us=rivals.best_us,
            known_us=workload.baselines_us,
            waited_us=lambda: waited_us(pids),
            open_us=timed.open_us,
        )
    except ParentLostError:
        assert parent is not None
        parent.drop()
        return None
    finally:
        if beside:
            beside.end()


def _effort(reference: Reference, baselines: int, *, brief: bool) -> MeasuringEffort:
    """Return the effort for one workload: all workloads share the time budget of one.

    The budget is for two baselines; more of them make a round longer, not the rounds fewer.
    """
    effort = effort_for(reference.problem.device, brief=brief)
    share = max(baselines, _USUAL) / _USUAL / len(reference.timed)
    return replace(effort, budget_s=effort.budget_s * share)


def _disbelieved(talk: Conversation, reference: Reference, objection: str) -> Failed:
    if objection == IDLE_KERNELS:
        talk.end()
        if not comes_to_rest(reference.problem.device):
            return Failed("infra_error", _BUSY)
    return Failed("rejected", objection)
