"""One candidate's evaluation: load it in its own process, verify, measure, diagnose."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TypeVar

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing, WorkloadTiming
from adaexplore.evaluate.judge.check import Reached
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.diagnosis.constant_weights import use_of_constants
from adaexplore.evaluate.judge.diagnosis.known_time import has_time_of
from adaexplore.evaluate.judge.diagnosis.profile import profiled, with_decoys_labelled
from adaexplore.evaluate.judge.diagnosis.waiting import waiting_labels, waiting_note
from adaexplore.evaluate.judge.failures import died, overran
from adaexplore.evaluate.judge.live_parents import LiveParent
from adaexplore.evaluate.judge.load import first_call, give_slots, inspect, load, patience_s
from adaexplore.evaluate.judge.measure import (
    measure_candidate,
    roofline_labels,
    rooflines,
    workload_timings,
)
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.timed import is_busy
from adaexplore.evaluate.judge.verify import verify
from adaexplore.evaluate.kernels.describe import (
    OwnKernels,
    code_of_candidate,
    describe,
    measured_parts,
    read_launched,
    traffic,
)
from adaexplore.evaluate.timing.combine import combined, combined_roofline
from adaexplore.evaluate.wire.kernel_messages import ListLaunched
from adaexplore.languages.fingerprint import fingerprint
from adaexplore.sandbox.lock import device_lock, make_way, waited_s
from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.watchdog import LimitExceededError

_Result = TypeVar("_Result")


def decided(run: Callable[[], _Result], talk: Conversation, timeout_s: float) -> _Result | Failed:
    """Return the result of `run`, or the verdict that ends it early."""
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


class DeviceUse:
    """The device's lock as one evaluation takes it; `held_s` sums up the seconds that it held it.

    The candidate's deadline moves by the time spent waiting for the lock.
    """

    def __init__(self, device: str, talk: Conversation) -> None:
        self._device = device
        self._talk = talk
        self.held_s = 0.0

    @contextmanager
    def hold(self, *, exclusive: bool) -> Iterator[None]:
        """Hold the device, alone or with others that do not time.

        The candidate is stopped while others have it.
        """
        asked = time.monotonic()
        with ExitStack() as held:
            self._talk.freeze()
            try:
                held.enter_context(device_lock(self._device, exclusive=exclusive))
            finally:
                self._talk.thaw()
            since, waited_before_s = time.monotonic(), waited_s()
            self._talk.deadline += since - asked
            try:
                yield
            finally:
                self.held_s += time.monotonic() - since - (waited_s() - waited_before_s)

    def make_way(self) -> float:
        """Stop the candidate and let those time who wait for it; return the seconds that took.

        Not where the GPU is still at work for it: a kernel that hangs occupies the GPU until its
        process ends.
        """
        return make_way(self._device, self._talk, self._is_at_rest)

    def _is_at_rest(self) -> bool:
        return self._device == "cpu" or not is_busy(self._device)

    @contextmanager
    def while_nobody_times(self) -> Iterator[None]:
        """Compile on the CPU only while no other evaluation times, which would be slowed."""
        if self._device != "cpu":
            yield
            return
        asked = time.monotonic()
        with device_lock("cpu", exclusive=False):
            self._talk.deadline += time.monotonic() - asked
            yield


def evaluate_candidate(
    talk: Conversation,
    reference: Reference,
    candidate: Candidate,
    device: DeviceUse,
    *,
    parent: LiveParent | None,
    best_us: Mapping[str, float],
    measured: Mapping[str, Passed],
    every_baseline: bool,
) -> Passed:
    """Return the verdict on a candidate that passes.

    `best_us` has the best time known by workload; `measured` holds earlier results by their
    `Descriptor.code`. The candidate is timed beside the strongest baselines, or every one. Raises
    `Stop`, `TimeoutError`, `WorkerDiedError` or `LimitExceededError`.
    """
    patience = patience_s(reference, candidate)
    on_gpu = reference.problem.device != "cpu"
    times_itself = on_gpu and _times_itself(candidate)
    is_called_apart = times_itself or not on_gpu
    with talk.considerate(device.make_way), device.while_nobody_times():
        labels = (*load(talk, reference, candidate), *waiting_labels(reference.problem, candidate))
        inspect(talk)
        if is_called_apart:
            with device.hold(exclusive=times_itself), talk.impatient(patience):
                first_call(talk)
    with (
        device.hold(exclusive=False),  # as few times as can be: others wait to have it alone
        talk.impatient(patience),
        talk.considerate(device.make_way),
    ):
        if not is_called_apart:
            first_call(talk)
        verified = verify(talk, reference)
        give_slots(talk, reference, verified.layouts)
    own = _own_kernels(talk)
    same = measured.get(code_of_candidate(candidate.source, own))
    if same and same.precision != verified.reached.precision:
        same = None
    if same and _is_written_alike(same, candidate):
        inspect(talk)
        return _taken_over(same, candidate, verified.reached, labels)
    with device.hold(exclusive=True):
        if same and has_time_of(talk, reference, verified, same):
            inspect(talk)
            return _taken_over(same, candidate, verified.reached, labels)
        timed = measure_candidate(
            talk, reference, verified, parent, best_us, every_baseline=every_baseline
        )
        constants = use_of_constants(talk, reference, verified, timed.timings)
        waiting = waiting_note(talk, reference, candidate)
        inspect(talk)
        if on_gpu:  # a profile has times
            found = profiled(talk, reference, candidate)
    if not on_gpu:
        with device.hold(exclusive=False):
            found = profiled(talk, reference, candidate)
    elif found.has_own_kernels:
        with device.hold(exclusive=False), talk.considerate(device.make_way):
            found = with_decoys_labelled(talk, reference, found)
    limits = rooflines(reference, timed.timings)
    objection = found.objection() if reference.problem.checks.require_custom else None
    if objection:
        raise Stop(Failed("rejected", objection))
    all_known = len(limits) == len(timed.timings)
    roofline = combined_roofline(list(limits.values())) if all_known else None
    profile_note = f"not all of its profile is known: {found.note}" if found.note else ""
    return Passed(
        timed.reached.precision,
        timed.reached.error,
        combined(list(timed.timings.values())),
        absolute_error=timed.reached.absolute,
        detail="\n".join(filter(None, (constants.note, waiting, profile_note))),
        labels=(
            *labels,
            *constants.labels,
            *roofline_labels(reference, timed.timings),
            *found.labels,
        ),
        profile=found.profile,
        roofline=roofline,
        descriptor=describe(
            candidate.source, own, measured_parts(found.profile), traffic(roofline)
        ),
        workloads=workload_timings(timed.timings, limits),
    )


def _times_itself(candidate: Candidate) -> bool:
    """Return whether the first call times configurations on a GPU, beside nobody's other work.

    They are compiled before (see `kernels.ahead`).
    """
    return "autotune" in candidate.source


def _own_kernels(talk: Conversation) -> OwnKernels:
    """Return the kernels launched so far, which are all that a call launches."""
    try:
        return read_launched(talk.ask(ListLaunched()))
    except Stop:  # a candidate may change its own cache
        return OwnKernels()


def _is_written_alike(same: Passed, candidate: Candidate) -> bool:
    """Return whether the sources are the same but for words; a candidate cannot forge that."""
    return same.descriptor is not None and same.descriptor.form == fingerprint(candidate.source)


def _without_parent(workload: WorkloadTiming) -> WorkloadTiming:
    assert isinstance(workload.timing, Timing)
    return replace(workload, timing=replace(workload.timing, parent=None))


def _taken_over(
    same: Passed, candidate: Candidate, reached: Reached, labels: tuple[str, ...]
) -> Passed:
    """Return an earlier measurement for a correct candidate that compiles to the same code."""
    assert same.descriptor
    assert same.measured
    return replace(
        same,
        error=reached.error,
        absolute_error=reached.absolute,
        timing=replace(same.measured, parent=None),
        labels=tuple(dict.fromkeys((*labels, *same.labels))),
        descriptor=replace(same.descriptor, form=fingerprint(candidate.source)),
        workloads=tuple(map(_without_parent, same.workloads)),
    )
