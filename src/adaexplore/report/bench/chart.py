"""Geometry of the charts of a judged benchmark: speedups by collection, and shares of verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.core.bench import BenchVerdict
from adaexplore.core.evaluation import Passed, Timing
from adaexplore.core.labels import ALGEBRA, set_apart
from adaexplore.report import text
from adaexplore.report.axes import NARROW, WIDE, ChartSize, SpeedupAxis, Tick
from adaexplore.report.bench.summary import BenchSummary, timing_of
from adaexplore.report.bench.tables import problem_name

BARS = ("faster", "right", "wrong_output", "rejected", "failed", "unjudged")
"""Parts of a bar in their order: clearly faster; right and not; wrong; refused; broken; none."""
_GAP = 14.0


@dataclass(frozen=True, slots=True)
class AnswerDot:
    """A right answer: its place, its interval, its kind (a CSS class) and its name."""

    x: float
    y: float
    low: float
    high: float
    css: str
    title: str


@dataclass(frozen=True, slots=True)
class AnswerBand:
    """The dots of a collection from the slowest to the fastest; `number` counts bands from 1."""

    collection: str
    left: float
    right: float
    number: int
    dots: tuple[AnswerDot, ...]

    @property
    def middle(self) -> float:
        """Place of the band's name."""
        return round((self.left + self.right) / 2, 1)


@dataclass(frozen=True, slots=True)
class AnswersChart:
    """Geometry of the chart of speedups, as the template draws it."""

    size: ChartSize
    baseline_y: float
    y_ticks: tuple[Tick, ...]
    bands: tuple[AnswerBand, ...]


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


def charts(summary: BenchSummary) -> list[AnswersChart]:
    """Return a wide and a narrow chart of the speedups; none where nothing was measured."""
    if not any(timing_of(verdict) for verdict in summary.verdicts):
        return []
    return [_chart(summary, size) for size in (WIDE, NARROW)]


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
        return "faster" if timing and timing.speedup_ci[0] > 1 else "right"
    return found.status if found.status in BARS else "failed"


def _chart(summary: BenchSummary, size: ChartSize) -> AnswersChart:
    timings = [timing for verdict in summary.verdicts if (timing := timing_of(verdict))]
    axis = SpeedupAxis.of([t.speedup for t in timings], size.top, size.height - size.bottom)
    names = [total.collection for total in summary.totals]
    width = (size.plot_right - size.left) / len(names)
    return AnswersChart(
        size=size,
        baseline_y=axis.y(1.0),
        y_ticks=axis.ticks,
        bands=tuple(
            _band(summary, name, number, size.left + number * width, width, axis)
            for number, name in enumerate(names)
        ),
    )


def _band(
    summary: BenchSummary, name: str, number: int, left: float, width: float, axis: SpeedupAxis
) -> AnswerBand:
    own = [(v, t) for v in summary.verdicts if v.entry.collection == name and (t := timing_of(v))]
    ordered = sorted(own, key=lambda pair: pair[1].speedup)
    inner = width - 2 * _GAP
    dots = tuple(
        _dot(verdict, timing, left + _GAP + inner * (place + 0.5) / len(ordered), axis)
        for place, (verdict, timing) in enumerate(ordered)
    )
    return AnswerBand(name, round(left, 1), round(left + width, 1), number + 1, dots)


def _dot(verdict: BenchVerdict, timing: Timing, x: float, axis: SpeedupAxis) -> AnswerDot:
    low, high = timing.speedup_ci
    return AnswerDot(
        x=round(x, 1),
        y=axis.y(timing.speedup),
        low=axis.y(low),
        high=axis.y(high),
        css=_css(verdict),
        title=f"{problem_name(verdict)}: {text.speedup(timing.speedup)} "
        f"({text.interval(timing.speedup_ci)}) over {text.baseline_name(timing.strongest)}",
    )


def _css(verdict: BenchVerdict) -> str:
    labels: Sequence[str] = getattr(verdict.evaluation, "labels", ())
    if set_apart(verdict.labels):
        return "unmeasured"
    return "small" if ALGEBRA in labels else "large"
