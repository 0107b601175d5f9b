"""Geometry of the chart of a comparison: the curve of each arm with its band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.report import text
from adaexplore.report.axes import NARROW, WIDE, ChartSize, SpeedupAxis, Tick, step_ticks
from adaexplore.report.compare.comparison import ArmCurve, RunGroup
from adaexplore.report.compare.resample import Interval
from adaexplore.report.compare.traces import WHOLE, Axis, spelled

COLOURS = 6
"""Number of colours; further lines are dashed and start again at the first colour."""


@dataclass(frozen=True, slots=True)
class ArmLine:
    """The curve and band of an arm as SVG paths; `number` is the arm's index from 0."""

    arm: str
    number: int
    path: str
    band: str
    value: str

    @property
    def css(self) -> str:
        """CSS classes of the line's colour."""
        dashed = " dashed" if self.number >= COLOURS else ""
        return f"arm-{self.number % COLOURS}{dashed}"


@dataclass(frozen=True, slots=True)
class ArmsChart:
    """Geometry of the chart, as the template draws it."""

    size: ChartSize
    bottom: float
    baseline_y: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x_title: str
    lines: tuple[ArmLine, ...]


@dataclass(frozen=True, slots=True)
class _ArmsPlot:
    """Positions of amounts and speedups."""

    size: ChartSize
    until: float
    axis: SpeedupAxis

    def x(self, amount: float) -> float:
        width = self.size.plot_right - self.size.left
        return round(self.size.left + width * amount / self.until, 1)

    def y(self, speedup: float) -> float:
        return self.axis.y(speedup)


def charts(group: RunGroup, arms: Sequence[str], axis: Axis) -> list[ArmsChart]:
    """Return a wide and a narrow chart of the group; none without curves."""
    return [_chart(group, arms, axis, size) for size in (WIDE, NARROW)] if group.curves else []


def describe(group: RunGroup, axis: Axis) -> str:
    """Return the chart's content in one sentence, for screen readers."""
    ends = ", ".join(f"{curve.arm} {text.speedup(curve.speedups[-1])}" for curve in group.curves)
    at = spelled(axis, group.curves[0].at[-1])
    return f"Geometric mean of the best speedups so far, logarithmic; at {at}: {ends}."


def _chart(group: RunGroup, arms: Sequence[str], axis: Axis, size: ChartSize) -> ArmsChart:
    values = [v for curve in group.curves for v in curve.speedups]
    values += [v for curve in group.curves for band in curve.band if band for v in band]
    speedups = SpeedupAxis.of(values, size.top, size.height - size.bottom)
    plot = _ArmsPlot(size, group.curves[0].at[-1], speedups)
    return ArmsChart(
        size=size,
        bottom=speedups.bottom,
        baseline_y=plot.y(1.0),
        x_ticks=tuple(Tick(plot.x(at), label) for at, label in _x_ticks(plot.until, axis)),
        y_ticks=speedups.ticks,
        x_title=axis if axis in WHOLE else "",
        lines=tuple(_line(curve, arms.index(curve.arm), plot) for curve in group.curves),
    )


def _x_ticks(until: float, axis: Axis) -> list[tuple[float, str]]:
    if axis in WHOLE:
        return [(tick, str(tick)) for tick in step_ticks(int(until))]
    return [(until * part / 4, spelled(axis, until * part / 4)) for part in (1, 2, 3, 4)]


def _line(curve: ArmCurve, number: int, plot: _ArmsPlot) -> ArmLine:
    bands: list[Interval] = [band for band in curve.band if band]
    path = _stairs(curve.at, curve.speedups, plot)
    band = ""
    if len(bands) == len(curve.at):
        upper = _stairs(curve.at, [high for _, high in bands], plot)
        lower = _stairs_back(curve.at, [low for low, _ in bands], plot)
        band = f"{upper}{lower}Z"
    return ArmLine(curve.arm, number, path, band, text.speedup(curve.speedups[-1]))


def _stairs(at: Sequence[float], values: Sequence[float], plot: _ArmsPlot) -> str:
    """Return a path of level segments that steps to each next value."""
    path = f"M{plot.x(at[0])} {plot.y(values[0])}"
    return path + "".join(
        f"H{plot.x(place)}V{plot.y(value)}" for place, value in zip(at[1:], values[1:], strict=True)
    )


def _stairs_back(at: Sequence[float], values: Sequence[float], plot: _ArmsPlot) -> str:
    """Return the same path from its end to its start, to close an outline."""
    path = f"L{plot.x(at[-1])} {plot.y(values[-1])}"
    places = list(zip(at, values, strict=True))
    for (_, value), (place, _) in zip(places[-2::-1], places[:0:-1], strict=True):
        path += f"H{plot.x(place)}V{plot.y(value)}"
    return path + f"H{plot.x(at[0])}"
