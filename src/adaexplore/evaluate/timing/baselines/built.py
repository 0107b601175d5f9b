"""The baselines of a candidate on one workload: built, checked and timed by the judge."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from statistics import median

from adaexplore.core.protocols.clock import Clock
from adaexplore.evaluate.timing.audit import Own, excess
from adaexplore.evaluate.timing.baselines.compiling import compiling_lent
from adaexplore.evaluate.timing.baselines.offered import (
    BUILD_ERRORS,
    Baseline,
    Call,
    Subject,
    baseline_named,
    eager,
    names_offered,
)
from adaexplore.evaluate.timing.clock import clock_for
from adaexplore.evaluate.timing.combine import geometric_mean
from adaexplore.evaluate.timing.cpu_time import own_waited_us
from adaexplore.evaluate.timing.fresh import FreshInputs
from adaexplore.evaluate.timing.placement import threads_apart
from adaexplore.evaluate.timing.rounds import Round, quiet_rounds, timed_block
from adaexplore.evaluate.timing.turnstile.own import OwnSlots, OwnTurnstile
from adaexplore.evaluate.timing.turnstile.protocol import nothing_used
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import CheckedSet
from adaexplore.sandbox.family import threads_of
from adaexplore.sandbox.user.user_code import causes, is_out_of_memory
from adaexplore.sandbox.user.values import NamedTensor

_OVERHEADS = 6  # blocks: the machine may be busier than it was
_TYPICAL = {"cpu": 0.5, "cuda": 0.25}  # of these: on a GPU, a busy host only adds to the device's
_CHECKED = 2  # input sets: a captured graph is right on the one that it was captured with
_BESIDE = 2
_CLOSE = 2.0  # times as slow: a trial that errs by more would have noticed the load
_BRIEF_ROUNDS, _BRIEF_CALLS = 5, 3
EAGER = "eager"


class Baselines:
    """The reference's module as PyTorch runs it, each way of which is a party beside candidates.

    They run in the requested class. A way that cannot be built, or gives a wrong result, is left
    out, with a note. `forms` is the number of workloads that share the module. `waited` is the
    share of the last brief timing for which threads had no processor.
    """

    def __init__(
        self, runs: ReferenceRuns, sets: list[CheckedSet], notes: list[str], *, forms: int = 1
    ) -> None:
        self._runs = runs
        self._notes = notes
        self._own = [s for s in sets if s.from_problem]
        self.subject = Subject(runs.instance.model, self._own[0].inputs, runs.problem.device, forms)
        self._calls: dict[str, Call] = {EAGER: eager(self.subject)}
        self._left_out: set[str] = set()
        self._may_place = runs.problem.device == "cpu"  # not with threads that a call creates
        self.waited = 0.0
        self._overheads_us: list[float] = []
        self._excesses: list[float] = []
        self._entering_us: list[float] = []

    @property
    def offered(self) -> list[str]:
        """The names of the baselines that apply to this workload."""
        return names_offered(self.subject)

    @property
    def built(self) -> list[str]:
        """The names of the baselines that can be timed."""
        return list(self._calls)

    @cached_property
    def _clock(self) -> Clock:
        """The clock, which holds memory on a GPU."""
        return clock_for(self._runs.problem.device)

    @cached_property
    def _turnstile(self) -> OwnTurnstile:
        """The baselines' turnstile; nothing is timed in a confined process."""
        return OwnTurnstile(self._runs.problem.device)

    @property
    def own(self) -> Own:
        """What the judge's clock found on the last blocks."""
        overheads_us, excesses = self._overheads_us[-_OVERHEADS:], self._excesses[-_OVERHEADS:]
        typical = _TYPICAL[self._runs.problem.device.partition(":")[0]]
        overhead_us = sorted(overheads_us)[int(typical * len(overheads_us))]
        return replace(self._launching, overhead_us=overhead_us, excess=max(excesses))

    @property
    def _launching(self) -> Own:
        """What launching took on the last blocks; there may be none yet."""
        # Threads of this process may take Python's lock from each other while they ask.
        entering_us = min(self._entering_us[-_OVERHEADS:], default=0.0)
        delivering_us = median(self._turnstile.delivering_us or [0.0])
        return Own(0.0, entering_us=entering_us, delivering_us=delivering_us)

    def build(self, name: str) -> bool:
        """Build a baseline and check its results; return whether it can be timed."""
        if name not in self._calls and name not in self._left_out:
            why = self._try(baseline_named(name))
            if why:
                self._left_out.add(name)
                self._notes.append(left_out(name, why))
        return name in self._calls

    def calls_in(self, span_us: float, fastest_us: float | None = None) -> int:
        """Return roughly the number of calls that fill a span, of the eager reference by default.

        `fastest_us` is the time of a call where a faster one is known.
        """

        def call(_: int) -> object:
            return self._calls[EAGER](self.subject.inputs)

        if fastest_us is None:
            with self._runs.scope(self._runs.precision):
                self._clock.warm(call)
                fastest_us = median(self._clock.block(call, 3, lambda _, __: None))
        return math.ceil(span_us / fastest_us)

    def blocks(
        self, fresh: FreshInputs, names: Iterable[str]
    ) -> dict[str, Callable[[int], list[float]]]:
        """Return by name a function that times a number of calls, at most one on each slot."""
        return {name: self._block(self._calls[name], fresh) for name in names}

    def time(self, fresh: FreshInputs, names: Iterable[str]) -> dict[str, float]:
        """Time baselines briefly, in microseconds; the caller holds the device."""
        blocks, count = self.blocks(fresh, names), min(_BRIEF_CALLS, fresh.count)

        def take() -> Round:
            return {
                name: timed_block(block, count, own_waited_us) for name, block in blocks.items()
            }

        rounds = quiet_rounds(take, _BRIEF_ROUNDS)
        self.waited = max(median(r[name].waited for r in rounds) for name in blocks)
        return {name: median(r[name].time_us for r in rounds) for name in blocks}

    def _block(self, run: Call, fresh: FreshInputs) -> Callable[[int], list[float]]:
        """Return a function that times calls of a baseline as candidates are timed.

        The calls pass a turnstile too, and work on memory that no candidate can write to.
        """
        inputs, warming = fresh.own.inputs, fresh.warming
        slots = OwnSlots(fresh.own.open, fresh.own.seals, fresh.own_sums)

        def warm_call(i: int) -> object:
            return run(warming[i % len(warming)])

        def call(i: int) -> list[NamedTensor]:
            return run(inputs[i])

        def block(count: int) -> list[float]:
            with self._runs.scope(self._runs.precision):
                self._clock.warm(warm_call)
                fresh.prepare_own(count)
                with self._placed():
                    times, passages = self._turnstile.block(
                        self._clock,
                        call,
                        count,
                        slots,
                        fresh.take,
                        used=_other_threads_us if fresh.own.open_slowly else nothing_used,
                        head_start_s=self._launching.head_start_s,
                    )
            around_us = [w - t for w, t in zip(passages.windows_us, times, strict=True)]
            self._overheads_us.append(median(around_us))
            self._excesses.append(excess(times))
            if passages.entering_us:
                self._entering_us.append(median(passages.entering_us))
            return times

        return block

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """Place the threads of a block on the CPU as those of candidates are placed."""
        if not self._may_place:
            yield
            return
        threads = set(threads_of(os.getpid()))
        with threads_apart(os.getpid()):
            yield
        self._may_place = threads.issuperset(threads_of(os.getpid()))

    def _try(self, baseline: Baseline) -> str:
        """Build a baseline for the first inputs; return the reason to leave it out, or ""."""
        checked = self._own[:_CHECKED]
        try:
            with (
                self._runs.scope(self._runs.precision),
                compiling_lent(self._runs.problem.device),
            ):
                call = baseline.build(self.subject)
                results = [call(s.inputs) for s in checked]
        except BUILD_ERRORS as error:
            return why_not_built(error)
        for found, true in zip(results, checked, strict=True):
            for (_, out), truth in zip(found, true.truths, strict=True):
                if truth.classify(truth.deviation(out)) is None:
                    return "its result is wrong"
        self._calls[baseline.name] = call
        return ""


def _other_threads_us() -> float:
    """Return the CPU time of this process in microseconds, but for the calling thread's."""
    return (time.process_time_ns() - time.thread_time_ns()) / 1000.0


def left_out(name: str, why: str) -> str:
    """Return the note on a baseline that cannot be timed."""
    return f"baseline {name} is left out: {why}"


def why_not_built(error: Exception) -> str:
    """Return the reason of a failed build in one line."""
    if any(is_out_of_memory(cause) for cause in causes(error)):
        return "it does not fit on the device beside what else is there"
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def by_speed(times_us: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the baselines that have a time on every workload, the fastest first.

    `times_us` are those of each workload; their geometric mean counts.
    """
    first, *others = times_us
    names = [name for name in first if all(name in each for each in others)]
    return sorted(names, key=lambda name: geometric_mean([each[name] for each in times_us]))


def strongest(times_us: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """Return the baselines to time beside candidates.

    The fastest over all workloads, the second where it is at most `_CLOSE` times as slow, and the
    fastest of each workload.
    """
    ranked = by_speed(times_us)
    mean_us = {name: geometric_mean([each[name] for each in times_us]) for name in ranked}
    close = [name for name in ranked[:_BESIDE] if mean_us[name] <= _CLOSE * mean_us[ranked[0]]]
    fastest = [min(ranked, key=lambda name: each[name]) for each in times_us]
    return tuple(dict.fromkeys((*close, *fastest)))
