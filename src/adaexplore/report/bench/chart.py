"""The charts of a judged benchmark: speedups by collection, and shares of verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.core.bench import BenchVerdict
from adaexplore.core.verdict.evaluation import Passed
from adaexplore.core.verdict.labels import ALGEBRA, set_apart
from adaexplore.report.bands import BandsChart, Speed, bands_charts
from adaexplore.report.bench.summary import BenchSummary, timing_of
from adaexplore.report.bench.tables import problem_name

BARS = ("faster", "right", "wrong_output", "rejected", "failed", "unjudged")
"""Parts of a bar in their order: clearly faster; right and not; wrong; refused; broken; none."""


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar: its kind, its number of answers and its share of them."""

    kind: str
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class VerdictBar:
    """The verdicts on the answers of a collection, as parts of one bar; `number` counts from 1."""

    collection: str
    number: int
    parts: tuple[BarPart, ...]


def charts(summary: BenchSummary) -> list[BandsChart]:
    """Return a wide and a narrow chart of the speedups; none where nothing was measured."""
    bands: dict[str, list[Speed]] = {total.collection: [] for total in summary.totals}
    for verdict in summary.verdicts:
        if timing := timing_of(verdict):
            speed = Speed(problem_name(verdict), timing, _css(verdict))
            bands[verdict.entry.collection].append(speed)
    return bands_charts(bands)


def describe(summary: BenchSummary) -> str:
    """Return the chart's content in one sentence, for screen readers."""
    parts = [f"{t.collection} {t.right} of {t.judged} right" for t in summary.totals]
    return f"Speedups of right answers by collection, logarithmic: {', '.join(parts)}."


def bars(summary: BenchSummary) -> list[VerdictBar]:
    """Return the bar of each collection with at least one verdict."""
    found = []
    for number, total in enumerate(summary.totals, 1):
        kinds = Counter(
            _kind(v) for v in summary.verdicts if v.entry.collection == total.collection
        )
        count = sum(kinds.values())
        parts = [BarPart(kind, kinds[kind], kinds[kind] / count) for kind in BARS if kinds[kind]]
        if parts:
            found.append(VerdictBar(total.collection, number, tuple(parts)))
    return found


def _kind(verdict: BenchVerdict) -> str:
    found, timing = verdict.evaluation, timing_of(verdict)
    if found is None or not verdict.is_final:
        return "unjudged"
    if isinstance(found, Passed):
        is_faster = timing and timing.speedup_ci[0] > 1 and not timing.is_too_noisy
        return "faster" if is_faster else "right"
    return found.status if found.status in BARS else "failed"


def _css(verdict: BenchVerdict) -> str:
    labels: Sequence[str] = getattr(verdict.evaluation, "labels", ())
    if set_apart(verdict.labels):
        return "unmeasured"
    return "small" if ALGEBRA in labels else "large"
