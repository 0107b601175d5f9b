"""Geometry of the best-so-far chart: a summary in, coordinates out; the template draws them.

The vertical axis is the logarithm of the like-for-like speedup, so that 2x and 0.5x lie equally far
from the baseline. Coordinates are in SVG user units with the origin at the top left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.report import text
from adaexplore.report.summary import CurvePoint, Row, Summary

FLOOR = 0.05
"""Slowest speedup with a place of its own; anything slower sits on the axis' lower end."""

TICK_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)


DENSE = 300
"""Marks beyond which they overlap and are drawn fainter."""

MOST = 2000
"""Marks beyond which only some are drawn: a browser is slow with more, and nobody can tell."""


@dataclass(frozen=True, slots=True)
class Size:
    """A chart's outer size and margins."""

    name: str
    width: float
    height: float
    left: float = 52
    right: float = 18
    top: float = 18
    bottom: float = 40
    strip: float = 26
    """Height of the strip under the plot where steps without a measurement stand."""

    @property
    def plot_bottom(self) -> float:
        """Where the plot ends and the strip of failures begins."""
        return self.height - self.bottom - self.strip

    @property
    def plot_right(self) -> float:
        """The right end of the plot."""
        return self.width - self.right


WIDE = Size("wide", 1120, 380)
NARROW = Size("narrow", 400, 340, left=44, right=12)


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """One step's mark; `low_y` and `high_y` span its interval, equal to `y` where there is none."""

    node_id: int
    x: float
    y: float
    low_y: float
    high_y: float
    kind: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Everything the template draws."""

    size: Size
    baseline_y: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    staircase: str
    lineage: str
    marks: tuple[Mark, ...]
    radius: float
    dense: bool
    confirmation: Mark | None = None


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps steps and speedups to coordinates."""

    size: Size
    steps: int
    low: float
    high: float

    def x(self, step: float) -> float:
        share = (step - 0.5) / self.steps
        return round(self.size.left + share * (self.size.plot_right - self.size.left), 1)

    def y(self, speedup: float) -> float:
        value = min(max(speedup, self.low), self.high)
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.size.plot_bottom - share * (self.size.plot_bottom - self.size.top), 1)


def make_chart(summary: Summary, size: Size) -> Chart:
    """The chart of `summary` at `size`; works for any number of steps, none included."""
    low, high = _bounds(summary)
    scale = _Scale(size, max((row.node.id for row in summary.rows), default=1), low, high)
    rows = _drawn(summary.rows)
    marks = tuple(_mark(row, scale) for row in rows)
    return Chart(
        size=size,
        baseline_y=scale.y(1.0),
        x_ticks=tuple(Tick(scale.x(step), str(step)) for step in step_ticks(scale.steps)),
        y_ticks=tuple(Tick(scale.y(value), f"{value:g}×") for value in ratio_ticks(low, high)),
        staircase=_staircase(summary.curve, scale),
        lineage=_lineage(rows, marks),
        marks=marks,
        radius=round(min(4.2, max(2.4, 0.28 * (scale.x(2) - scale.x(1)))), 1),
        dense=len(marks) > DENSE,
        confirmation=_confirmation(summary, scale),
    )


def ratio_ticks(low: float, high: float) -> list[float]:
    """Round speedups from `low` to `high`, always with 1: about three to nine of them.

    Powers of two where the range spans a factor of 4 or more (every second, third, ... one where
    there would be too many), else multiples of a round step.
    """
    if high / low >= 4:
        first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
        stride = max(1, math.ceil((last - first) / 8))
        return [2.0**power for power in range(first, last + 1) if power % stride == 0]
    step = next((step for step in TICK_STEPS if (high - low) / step <= 7), TICK_STEPS[-1])
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 2) for index in range(first, last + 1)]


def step_ticks(steps: int) -> list[int]:
    """Round step numbers from 1 to `steps`, at most eight."""
    if steps <= 8:
        return list(range(1, steps + 1))
    magnitude = 10 ** math.floor(math.log10(steps))
    stride = next(
        stride
        for stride in (magnitude // 5, magnitude // 2, magnitude, 2 * magnitude)
        if stride and steps / stride <= 7
    )
    return [1, *range(stride, steps + 1, stride)] if stride > 1 else list(range(1, steps + 1))


def _bounds(summary: Summary) -> tuple[float, float]:
    """The shown range of speedups: every interval above the floor, the baseline, and some air."""
    timings = [*(row.timing for row in summary.rows), summary.headline.timing]
    values = [bound for t in timings if t for bound in (*t.speedup_ci, t.speedup)]
    low = max(min([1.0, *values]), FLOOR)
    high = max([1.0, *values])
    air = max((high / low) ** 0.06, 1.04)
    return low / air, high * air


def _drawn(rows: Sequence[Row]) -> Sequence[Row]:
    """All rows, or about `MOST`: the way to the best, improvements if few, every so many others."""
    stride = math.ceil(len(rows) / MOST)
    few = sum(row.improved for row in rows) <= MOST // 10
    return [
        row
        for i, row in enumerate(rows)
        if i % stride == 0 or row.on_best_path or (few and row.improved)
    ]


def _mark(row: Row, scale: _Scale) -> Mark:
    node = row.node
    x = scale.x(node.id)
    timing = row.timing
    if timing is None:
        y = scale.size.plot_bottom + scale.size.strip / 2
        return Mark(node.id, x, y, y, y, "unmeasured" if row.passed else "failed")
    low, high = timing.speedup_ci
    kind = "best" if row.best else node.step_kind
    return Mark(node.id, x, scale.y(timing.speedup), scale.y(low), scale.y(high), kind)


def _confirmation(summary: Summary, scale: _Scale) -> Mark | None:
    head = summary.headline
    timing = head.timing
    if not head.confirmed or timing is None or head.node_id is None:
        return None
    low, high = timing.speedup_ci
    x = scale.size.plot_right + 6
    return Mark(
        head.node_id, x, scale.y(timing.speedup), scale.y(low), scale.y(high), "confirmation"
    )


def _staircase(curve: Sequence[CurvePoint], scale: _Scale) -> str:
    """The best so far as an SVG path that climbs at each improvement."""
    path: list[str] = []
    best: float | None = None
    for point in curve:
        if point.best_speedup is None or point.best_speedup == best:
            continue
        best = point.best_speedup
        x, y = scale.x(point.step), scale.y(best)
        path.append(f"H{x}V{y}" if path else f"M{x} {y}")
    if path:
        path.append(f"H{scale.size.plot_right}")
    return "".join(path)


def _lineage(rows: Sequence[Row], marks: Sequence[Mark]) -> str:
    """The line from the root's child to the best candidate, through its ancestors."""
    path = [mark for row, mark in zip(rows, marks, strict=True) if row.on_best_path]
    return "M" + "L".join(f"{mark.x} {mark.y}" for mark in path) if len(path) > 1 else ""


def describe(summary: Summary) -> str:
    """The chart in one sentence, for those who do not see it."""
    best = summary.best
    if best is None or best.passed is None:
        return f"No correct candidate in {len(summary.rows)} steps."
    if best.timing is None:
        return f"Nothing was measured in {len(summary.rows)} steps: all times are estimates."
    return (
        f"Best like-for-like speedup over {len(summary.rows)} steps, on a logarithmic scale: "
        f"it ends at {text.speedup(best.timing.speedup)}, reached at step {best.node.id}."
    )
