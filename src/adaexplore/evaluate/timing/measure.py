"""Interleaved measurement: candidate and baselines in turn, round by round."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from types import MappingProxyType

from adaexplore.core.verdict.evaluation import UNSEEN_US, Paired, Timing, is_wide
from adaexplore.evaluate.timing.rounds import (
    Round,
    TimeBlock,
    is_quiet,
    no_waiting,
    timed_block,
)
from adaexplore.evaluate.timing.statistics import median_interval

CANDIDATE = "candidate"
PARENT = "parent"

_NONE_KNOWN: Mapping[str, float] = MappingProxyType({})
_MOST_WAITED = 0.99
_FEWEST_CALLS = 2  # of a candidate
_EVENTS_US = 0.35
"""Half of what the times of the same code differ by in two processes (docs/results). CUDA promises
half a microsecond (`cudaEventElapsedTime`)."""

_LEAST_SHARE = 0.1  # of a time that is as short as its clock is coarse


@dataclass(frozen=True, slots=True)
class MeasuringEffort:
    """Limits of a measurement: time and number of calls.

    A block of the candidate takes about `block_us`, one of any other party `other_us`. Rounds go on
    until the interval of the speedup is narrower than `resolution` (relative, half width; `coarse`
    will do for a candidate that is slower than the best baseline in any case) or `budget_s` seconds
    are spent, within `min_rounds` and `max_rounds`; a candidate more than `hopeless` times slower
    than the best known time gets `min_rounds` only. Budget and `max_rounds` are stretched to
    `patience` times as much while an interval is wide or the machine is not quiet. The clock of
    each process may be off by `clock_us` in a call, and the candidate may take `unseen_us` longer
    than its clock tells; claims allow for both.
    """

    block_us: float = 20_000.0
    other_us: float = 20_000.0
    min_rounds: int = 7
    max_rounds: int = 40
    budget_s: float = 3.0
    resolution: float = 0.01
    coarse: float = 0.03
    hopeless: float = 3.0
    patience: float = 3.0
    clock_us: float = 0.0
    unseen_us: float = 0.0


def effort_for(device: str, *, brief: bool = False) -> MeasuringEffort:
    """The effort that a device name asks for; a `brief` one gives a verdict and a rough time.

    A GPU's times vary little; the candidate's block is longer so that nothing hides in it.
    """
    on_cpu = device == "cpu"
    effort = MeasuringEffort()
    if not on_cpu:
        effort = MeasuringEffort(other_us=10_000.0, clock_us=_EVENTS_US, unseen_us=UNSEEN_US)
    if not brief:
        return effort
    block_us = 5000.0 if on_cpu else 20_000.0  # on a GPU more could hide in a block
    return replace(
        effort, block_us=block_us, other_us=5000.0, max_rounds=9, budget_s=0.5, patience=1.0
    )


def nothing_open() -> float:
    """Return zero: the times of the candidate explain its block."""
    return 0.0


def measure(
    parties: Mapping[str, TimeBlock],
    effort: MeasuringEffort | None = None,
    *,
    most_calls: int = 100,
    best_us: float = math.inf,
    known_us: Mapping[str, float] = _NONE_KNOWN,
    waited_us: Callable[[], float] = no_waiting,
    open_us: Callable[[], float] = nothing_open,
) -> Timing:
    """Time all parties in interleaved rounds, in an order shuffled anew for each round.

    `parties` holds "candidate", the baselines, and "parent" if the candidate is to be compared with
    the one it was made from; no block has more than `most_calls` calls. Drift of the machine hits
    all parties of a round alike, so the speedup is the median of the rounds' own ratios, and its
    interval is that of their median. `best_us` is the best time known of any other candidate,
    `known_us` has earlier times of baselines, of those too that are no party (see `summarize`).

    `waited_us` returns the microseconds for which threads of the parties have waited for a
    processor so far. Rounds in which other programs kept a party waiting are measured again. If
    too few rounds are quiet within `effort.patience` times the budget, all rounds count, and the
    interval is that of `widened`.

    `open_us` returns the microseconds of a call that the candidate's times of its last block leave
    unexplained (see `Audit`). Its median over the rounds that count is charged to every call.
    """
    effort = effort or MeasuringEffort()
    rng = random.Random(0)
    pilot = {name: median(block(min(3, most_calls))) for name, block in parties.items()}
    least_us = dict(pilot)
    best_us = min(best_us, *(t for name, t in pilot.items() if name != CANDIDATE))
    hopeless = pilot[CANDIDATE] > effort.hopeless * best_us
    most = effort.min_rounds if hopeless else effort.max_rounds
    rounds: list[Round] = []
    started = time.monotonic()
    while True:
        order = list(parties)
        rng.shuffle(order)
        counts = {name: _count(name, least_us[name], effort, most_calls) for name in parties}
        blocks = {name: timed_block(parties[name], counts[name], waited_us) for name in order}
        blocks[CANDIDATE] = replace(blocks[CANDIDATE], open_us=open_us())
        rounds.append({name: blocks[name] for name in parties})
        least_us = {name: min(least_us[name], blocks[name].time_us) for name in parties}
        spent_s = time.monotonic() - started
        quiet = [r for r in rounds if is_quiet(r)]
        if len(quiet) >= effort.min_rounds:
            stretch = effort.patience if not hopeless and _is_wide(quiet) else 1.0
            spent = len(quiet) >= stretch * most or spent_s > stretch * effort.budget_s
            if spent or _narrow(quiet, effort):
                timing = summarize(quiet, _samples(quiet), known_us)
                return allowing_for(timing, effort.clock_us, effort.unseen_us)
        elif len(rounds) >= most or (
            len(rounds) >= effort.min_rounds and spent_s > effort.patience * effort.budget_s
        ):
            timing = widened(summarize(rounds, _samples(rounds), known_us), rounds)
            return allowing_for(timing, effort.clock_us, effort.unseen_us)


def widened(timing: Timing, rounds: Sequence[Round]) -> Timing:
    """Return the timing with the interval that the load of other programs leaves.

    A party that waited for a share w of its time might have needed (1 - w) of it, and no less. So
    the lower end of the speedup assumes that the baseline alone was delayed, and the upper end that
    the candidate alone was.
    """
    waited = {name: median(r[name].waited for r in rounds) for name in rounds[0]}
    others = max(waited[name] for name in _baselines(rounds))
    low, high = timing.speedup_ci
    floor = 1.0 - min(others, _MOST_WAITED)
    ceiling = 1.0 - min(waited[CANDIDATE], _MOST_WAITED)
    return replace(
        timing, speedup_ci=(low * floor, high / ceiling), waited=max(others, waited[CANDIDATE])
    )


def discounted(timing: Timing, quiet_us: Mapping[str, float]) -> Timing:
    """The timing with the baselines as fast as they were at a quieter moment.

    For a measurement beside which they were slow: whoever disturbed it, nobody gains by it.
    """
    beside_us = timing.baselines_us
    quiet_us = {name: quiet_us[name] for name in beside_us}
    share = min(min(quiet_us.values()) / min(beside_us.values()), 1.0)

    def share_of(name: str) -> float:
        return min(quiet_us[name] / beside_us[name], 1.0) if name in beside_us else share

    low, high = timing.speedup_ci
    over_compile = timing.speedup_compile
    return replace(
        timing,
        baselines_us=quiet_us,
        strongest="",  # the fastest at that moment
        speedup=share * timing.speedup,
        speedup_ci=(share * low, share * high),
        speedup_eager=share_of("eager") * timing.speedup_eager,
        speedup_compile=None if over_compile is None else share_of("compile") * over_compile,
    )


def charged(timing: Timing, extra_us: float) -> Timing:
    """Return the timing with `extra_us` microseconds added to every call of the candidate."""
    if extra_us <= 0.0:
        return timing
    share = timing.time_us / (timing.time_us + extra_us)

    def shared(interval: tuple[float, float]) -> tuple[float, float]:
        return share * interval[0], share * interval[1]

    parent, over_compile = timing.parent, timing.speedup_compile
    soonest_us, latest_us = timing.time_ci_us
    return replace(
        timing,
        time_us=timing.time_us + extra_us,
        time_ci_us=(soonest_us + extra_us, latest_us + extra_us),
        speedup=share * timing.speedup,
        speedup_ci=shared(timing.speedup_ci),
        speedup_eager=share * timing.speedup_eager,
        speedup_compile=None if over_compile is None else share * over_compile,
        parent=parent
        and replace(parent, speedup=share * parent.speedup, speedup_ci=shared(parent.speedup_ci)),
    )


def allowing_for(timing: Timing, clock_us: float, unseen_us: float) -> Timing:
    """Return the timing with intervals for what times of single calls do not prove.

    The clocks of both processes may be off by `clock_us`, and the candidate may take `unseen_us`
    longer than its clock tells. The interval over a parent, which makes no claim, allows for the
    clocks alone.
    """
    parent = timing.parent

    def factors(other_us: float, unseen_us: float) -> tuple[float, float]:
        share, other_share = clock_us / timing.time_us, clock_us / other_us
        below = max(1.0 - other_share, _LEAST_SHARE) / (1.0 + share + unseen_us / timing.time_us)
        return below, (1.0 + other_share) / max(1.0 - share, _LEAST_SHARE)

    soonest_us, latest_us = timing.time_ci_us
    allowance = factors(min(timing.baselines_us.values()), unseen_us)
    return replace(
        timing,
        time_ci_us=(max(soonest_us - clock_us, 0.0), latest_us + clock_us + unseen_us),
        speedup_ci=_scaled(timing.speedup_ci, allowance),
        allowance=allowance,
        parent=parent
        and replace(parent, speedup_ci=_scaled(parent.speedup_ci, factors(parent.time_us, 0.0))),
    )


def summarize(
    rounds: Sequence[Round],
    samples: int,
    known_us: Mapping[str, float] = _NONE_KNOWN,
) -> Timing:
    """Return the timing that rounds amount to.

    The speedup over a baseline that was no party is that over the strongest one, times the ratio of
    the two in `known_us`: an earlier measurement side by side.
    """
    times = [_times(r) for r in rounds]
    medians = {name: median(r[name] for r in times) for name in times[0]}
    strongest = _best_baseline(times)
    ratios = _ratios(times, strongest)
    over_eager = _over(times, "eager", known_us)
    assert over_eager is not None  # eager always runs
    timing = Timing(
        time_us=medians[CANDIDATE],
        time_ci_us=median_interval([r[CANDIDATE] for r in times]),
        baselines_us={name: medians[name] for name in _baselines(rounds)},
        speedup=median(ratios),
        speedup_ci=median_interval(ratios),
        speedup_eager=over_eager,
        samples=samples,
        parent=_paired(times) if PARENT in medians else None,
        speedup_compile=_over(times, "compile", known_us),
        strongest=strongest,
    )
    return charged(timing, median(r[CANDIDATE].open_us for r in rounds))


def _scaled(interval: tuple[float, float], factors: tuple[float, float]) -> tuple[float, float]:
    return interval[0] * factors[0], interval[1] * factors[1]


def _times(blocks: Round) -> dict[str, float]:
    """Return the time of a call by party, in microseconds.

    The candidate's is the median of its block, plus what the block's mean is further above the
    median than those of the baselines: a call that does the work of others is no noise.
    """
    noise_us = max(block.excess_us for name, block in blocks.items() if _is_baseline(name))
    times = {name: block.time_us for name, block in blocks.items()}
    times[CANDIDATE] += max(blocks[CANDIDATE].excess_us - noise_us, 0.0)
    return times


def _over(
    rounds: list[dict[str, float]], baseline: str, known_us: Mapping[str, float]
) -> float | None:
    """Return the speedup over a baseline, None where nothing is known of it."""
    if baseline in rounds[0]:
        return median(_ratios(rounds, baseline))
    strongest = _best_baseline(rounds)
    if baseline not in known_us or strongest not in known_us:
        return None
    return median(_ratios(rounds, strongest)) * known_us[baseline] / known_us[strongest]


def _paired(rounds: list[dict[str, float]]) -> Paired:
    ratios = _ratios(rounds, PARENT)
    time_us = median(r[PARENT] for r in rounds)
    return Paired(time_us, median(ratios), median_interval(ratios))


def _ratios(rounds: list[dict[str, float]], baseline: str) -> list[float]:
    return [r[baseline] / r[CANDIDATE] for r in rounds]


def _is_wide(rounds: Sequence[Round]) -> bool:
    times = [_times(r) for r in rounds]
    return is_wide(median_interval(_ratios(times, _best_baseline(times))))


def _narrow(rounds: Sequence[Round], effort: MeasuringEffort) -> bool:
    times = [_times(r) for r in rounds]
    ratios = _ratios(times, _best_baseline(times))
    low, high = median_interval(ratios)
    enough = effort.coarse if high < 1.0 else effort.resolution
    return (high - low) / 2 <= enough * median(ratios)


def _best_baseline(rounds: list[dict[str, float]]) -> str:
    """Return the baseline over which the speedup is the smallest."""
    return min(_baselines(rounds), key=lambda name: median(_ratios(rounds, name)))


def _baselines(rounds: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the baselines among the parties, in the order in which they were given."""
    return [name for name in rounds[0] if _is_baseline(name)]


def _is_baseline(party: str) -> bool:
    return party not in (CANDIDATE, PARENT)


def _count(party: str, least_us: float, effort: MeasuringEffort, most: int) -> int:
    """Return how many calls make a block of a party whose least time of a call is known.

    A candidate that is slow on purpose at first gets a short block once, and never one call alone.
    """
    if party == CANDIDATE:
        block_us, fewest = effort.block_us, _FEWEST_CALLS
    else:
        block_us, fewest = effort.other_us, 1
    return min(max(int(block_us / max(least_us, 1.0)), fewest), most)


def _samples(rounds: Sequence[Round]) -> int:
    return sum(r[CANDIDATE].calls for r in rounds)
