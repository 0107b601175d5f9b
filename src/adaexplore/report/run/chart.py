"""Geometry of the chart of a search: the speedup of every step and the best so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.report import text
from adaexplore.report.axes import ChartSize, SpeedupAxis, Tick, step_ticks
from adaexplore.report.run.summary import CurvePoint, Row, Summary

DENSE = 300
"""Number of marks above which they overlap and are drawn fainter."""

MAX_MARKS = 2000
"""Approximate limit on the marks: more slow a browser down and cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a step. `low_y` and `high_y` span its interval; both equal `y` without one."""

    node_id: int
    x: float
    y: float
    low_y: float
    high_y: float
    kind: str


@dataclass(frozen=True, slots=True)
class SearchChart:
    """Geometry of the chart, as the template draws it."""

    size: ChartSize
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
class _SearchPlot:
    """Positions of steps and speedups."""

    size: ChartSize
    steps: int
    axis: SpeedupAxis

    def x(self, step: float) -> float:
        share = (step - 0.5) / self.steps
        return round(self.size.left + share * (self.size.plot_right - self.size.left), 1)

    def y(self, speedup: float) -> float:
        return self.axis.y(speedup)


def make_chart(summary: Summary, size: ChartSize) -> SearchChart:
    """Return the chart of a search with any number of steps, also none."""
    timings = [*(row.timing for row in summary.rows), summary.headline.timing]
    values = [bound for t in timings if t for bound in (*t.speedup_ci, t.speedup)]
    axis = SpeedupAxis.of(values, size.top, size.plot_bottom)
    plot = _SearchPlot(size, max((row.node.id for row in summary.rows), default=1), axis)
    rows = _drawn(summary.rows)
    marks = tuple(_mark(row, plot) for row in rows)
    return SearchChart(
        size=size,
        baseline_y=plot.y(1.0),
        x_ticks=tuple(Tick(plot.x(step), str(step)) for step in step_ticks(plot.steps)),
        y_ticks=axis.ticks,
        staircase=_staircase(summary.curve, plot),
        lineage=_lineage(rows, marks),
        marks=marks,
        radius=round(min(4.2, max(2.4, 0.28 * (plot.x(2) - plot.x(1)))), 1),
        dense=len(marks) > DENSE,
        confirmation=_confirmation(summary, plot),
    )


def _drawn(rows: Sequence[Row]) -> Sequence[Row]:
    """Return all rows, or about `MAX_MARKS`: the best path, improvements if few, and a sample."""
    stride = math.ceil(len(rows) / MAX_MARKS)
    few = sum(row.improved for row in rows) <= MAX_MARKS // 10
    return [
        row
        for i, row in enumerate(rows)
        if i % stride == 0 or row.on_best_path or (few and row.improved)
    ]


def _mark(row: Row, plot: _SearchPlot) -> Mark:
    node = row.node
    x = plot.x(node.id)
    timing = row.timing
    if timing is None:
        y = plot.size.plot_bottom + plot.size.strip / 2
        return Mark(node.id, x, y, y, y, "unmeasured" if row.passed else "failed")
    low, high = timing.speedup_ci
    kind = "best" if row.best else node.step_kind
    return Mark(node.id, x, plot.y(timing.speedup), plot.y(low), plot.y(high), kind)


def _confirmation(summary: Summary, plot: _SearchPlot) -> Mark | None:
    head = summary.headline
    timing = head.timing
    if not head.confirmed or timing is None or head.node_id is None:
        return None
    low, high = timing.speedup_ci
    x = plot.size.plot_right + 6
    return Mark(head.node_id, x, plot.y(timing.speedup), plot.y(low), plot.y(high), "confirmation")


def _staircase(curve: Sequence[CurvePoint], plot: _SearchPlot) -> str:
    """Return the best so far as an SVG path that rises at each improvement."""
    path: list[str] = []
    best: float | None = None
    for point in curve:
        if point.best_speedup is None or point.best_speedup == best:
            continue
        best = point.best_speedup
        x, y = plot.x(point.step), plot.y(best)
        path.append(f"H{x}V{y}" if path else f"M{x} {y}")
    if path:
        path.append(f"H{plot.size.plot_right}")
    return "".join(path)


def _lineage(rows: Sequence[Row], marks: Sequence[Mark]) -> str:
    """Return the line through the ancestors of the best candidate as an SVG path."""
    path = [mark for row, mark in zip(rows, marks, strict=True) if row.on_best_path]
    return "M" + "L".join(f"{mark.x} {mark.y}" for mark in path) if len(path) > 1 else ""


def describe(summary: Summary) -> str:
    """Return the chart's content in one sentence, for screen readers."""
    best = summary.best
    if best is None or best.passed is None:
        return f"No correct candidate in {len(summary.rows)} steps."
    if best.timing is None:
        return f"Nothing was measured in {len(summary.rows)} steps: all times are estimates."
    return (
        f"Best like-for-like speedup over {len(summary.rows)} steps, on a logarithmic scale: "
        f"it ends at {text.speedup(best.timing.speedup)}, reached at step {best.node.id}."
    )
