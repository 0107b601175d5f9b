"""Interleaved measurement: candidate and baselines in turn, round by round."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from types import MappingProxyType

from adaexplore.core.evaluation import Paired, Timing
from adaexplore.evaluate.timing.statistics import median_interval

CANDIDATE = "candidate"
PARENT = "parent"

_NONE_KNOWN: Mapping[str, float] = MappingProxyType({})

TimeBlock = Callable[[int], list[float]]
"""Times that many calls and returns microseconds each."""


@dataclass(frozen=True, slots=True)
class MeasuringEffort:
    """Limits of a measurement: time and number of calls.

    A block of the candidate takes about `block_us`, one of any other party `other_us`. Rounds go on
    until the interval of the speedup is narrower than `resolution` (relative, half width; `coarse`
    will do for a candidate that is slower than the best baseline in any case) or `budget_s` seconds
    are spent, within `min_rounds` and `max_rounds`; a candidate more than `hopeless` times slower
    than the best known time gets `min_rounds` only.
    """

    block_us: float = 20_000.0
    other_us: float = 20_000.0
    min_rounds: int = 7
    max_rounds: int = 40
    budget_s: float = 3.0
    resolution: float = 0.01
    coarse: float = 0.03
    hopeless: float = 3.0


def effort_for(device: str, *, brief: bool = False) -> MeasuringEffort:
    """The effort that a device name asks for; a `brief` one gives a verdict and a rough time.

    A GPU's times vary little; the candidate's block is longer so that nothing hides in it.
    """
    if brief:
        block_us = 5000.0 if device == "cpu" else 20_000.0  # on a GPU more could hide in a block
        return MeasuringEffort(block_us=block_us, other_us=5000.0, max_rounds=9, budget_s=0.5)
    return MeasuringEffort() if device == "cpu" else MeasuringEffort(other_us=10_000.0)


def measure(
    parties: Mapping[str, TimeBlock],
    effort: MeasuringEffort | None = None,
    *,
    most_calls: int = 100,
    best_us: float = math.inf,
    known_us: Mapping[str, float] = _NONE_KNOWN,
) -> Timing:
    """Times all parties in interleaved rounds, in an order shuffled anew for each round.

    `parties` holds "candidate", the baselines, and "parent" if the candidate is to be compared with
    the one it was made from; no block has more than `most_calls` calls. Drift of the machine hits
    all parties of a round alike, so the speedup is the median of the rounds' own ratios, and its
    interval is that of their median. `best_us` is the best time known of any other candidate,
    `known_us` has earlier times of baselines, of those too that are no party (see `summarize`).
    """
    effort = effort or MeasuringEffort()
    rng = random.Random(0)
    pilot = {name: median(block(min(3, most_calls))) for name, block in parties.items()}
    counts = {
        name: _count(effort.block_us if name == CANDIDATE else effort.other_us, time_us, most_calls)
        for name, time_us in pilot.items()
    }
    best_us = min(best_us, *(t for name, t in pilot.items() if name != CANDIDATE))
    hopeless = pilot[CANDIDATE] > effort.hopeless * best_us
    rounds: list[dict[str, float]] = []
    samples = 0
    started = time.monotonic()
    while len(rounds) < (effort.min_rounds if hopeless else effort.max_rounds):
        order = list(parties)
        rng.shuffle(order)
        times = {name: median(parties[name](counts[name])) for name in order}
        rounds.append({name: times[name] for name in parties})
        samples += counts[CANDIDATE]
        if len(rounds) < effort.min_rounds:
            continue
        if time.monotonic() - started > effort.budget_s or _narrow(rounds, effort):
            break
    return summarize(rounds, samples, known_us)


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
        speedup=share * timing.speedup,
        speedup_ci=(share * low, share * high),
        speedup_eager=share_of("eager") * timing.speedup_eager,
        speedup_compile=None if over_compile is None else share_of("compile") * over_compile,
    )


def summarize(
    rounds: list[dict[str, float]], samples: int, known_us: Mapping[str, float] = _NONE_KNOWN
) -> Timing:
    """The timing that rounds of medians (microseconds by party) amount to.

    The speedup over a baseline that was no party is that over the strongest one, times the ratio of
    the two in `known_us`: an earlier measurement side by side.
    """
    medians = {name: median(r[name] for r in rounds) for name in rounds[0]}
    ratios = _ratios(rounds, _best_baseline(rounds))
    over_eager = _over(rounds, "eager", known_us)
    assert over_eager is not None  # eager always runs
    return Timing(
        time_us=medians[CANDIDATE],
        time_ci_us=median_interval([r[CANDIDATE] for r in rounds]),
        baselines_us={name: medians[name] for name in _baselines(rounds)},
        speedup=median(ratios),
        speedup_ci=median_interval(ratios),
        speedup_eager=over_eager,
        samples=samples,
        parent=_paired(rounds) if PARENT in medians else None,
        speedup_compile=_over(rounds, "compile", known_us),
    )


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


def _narrow(rounds: list[dict[str, float]], effort: MeasuringEffort) -> bool:
    ratios = _ratios(rounds, _best_baseline(rounds))
    low, high = median_interval(ratios)
    enough = effort.coarse if high < 1.0 else effort.resolution
    return (high - low) / 2 <= enough * median(ratios)


def _best_baseline(rounds: list[dict[str, float]]) -> str:
    return min(_baselines(rounds), key=lambda name: median(r[name] for r in rounds))


def _baselines(rounds: list[dict[str, float]]) -> list[str]:
    """Return the baselines among the parties, in the order in which they were given."""
    return [name for name in rounds[0] if name not in (CANDIDATE, PARENT)]


def _count(block_us: float, time_us: float, most: int) -> int:
    return int(min(max(block_us / max(time_us, 1.0), 1), most))
