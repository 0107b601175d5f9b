"""Geometry of a comparison's curves: groups in, coordinates out; the template draws them.

The vertical axis is logarithmic. Coordinates are in SVG user units, the origin at the top left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.report import text
from adaexplore.report.comparison import Curve, Group
from adaexplore.report.curve import FLOOR, NARROW, WIDE, Size, Tick, ratio_ticks, step_ticks
from adaexplore.report.resample import Interval
from adaexplore.report.traces import WHOLE, Axis, spelled

COLOURS = 6
"""Lines beyond so many are dashed and begin with the first colour again."""


@dataclass(frozen=True, slots=True)
class Line:
    """An arm's curve and its band as SVG paths; `number` is the arm's place, from 0."""

    arm: str
    number: int
    path: str
    band: str
    value: str

    @property
    def css(self) -> str:
        """The classes that colour it."""
        dashed = " dashed" if self.number >= COLOURS else ""
        return f"arm-{self.number % COLOURS}{dashed}"


@dataclass(frozen=True, slots=True)
class Chart:
    """Everything the template draws."""

    size: Size
    bottom: float
    baseline_y: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x_title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps amounts and speedups to coordinates."""

    size: Size
    until: float
    low: float
    high: float

    @property
    def bottom(self) -> float:
        return self.size.height - self.size.bottom

    def x(self, amount: float) -> float:
        width = self.size.plot_right - self.size.left
        return round(self.size.left + width * amount / self.until, 1)

    def y(self, speedup: float) -> float:
        value = min(max(speedup, self.low), self.high)
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.bottom - share * (self.bottom - self.size.top), 1)


def charts(group: Group, arms: Sequence[str], axis: Axis) -> list[Chart]:
    """The group's curves, wide and narrow; none where there are no curves."""
    return [_chart(group, arms, axis, size) for size in (WIDE, NARROW)] if group.curves else []


def describe(group: Group, axis: Axis) -> str:
    """The chart in one sentence, for those who do not see it."""
    ends = ", ".join(f"{curve.arm} {text.speedup(curve.speedups[-1])}" for curve in group.curves)
    at = spelled(axis, group.curves[0].at[-1])
    return f"Geometric mean of the best speedups so far, logarithmic; at {at}: {ends}."


def _chart(group: Group, arms: Sequence[str], axis: Axis, size: Size) -> Chart:
    values = [1.0, *(v for curve in group.curves for v in curve.speedups)]
    values += [v for curve in group.curves for band in curve.band if band for v in band]
    air = max((max(values) / max(min(values), FLOOR)) ** 0.06, 1.04)
    low, high = max(min(values), FLOOR) / air, max(values) * air
    scale = _Scale(size, group.curves[0].at[-1], low, high)
    return Chart(
        size=size,
        bottom=scale.bottom,
        baseline_y=scale.y(1.0),
        x_ticks=tuple(Tick(scale.x(at), label) for at, label in _x_ticks(scale.until, axis)),
        y_ticks=tuple(Tick(scale.y(value), f"{value:g}×") for value in ratio_ticks(low, high)),
        x_title=axis if axis in WHOLE else "",
        lines=tuple(_line(curve, arms.index(curve.arm), scale) for curve in group.curves),
    )


def _x_ticks(until: float, axis: Axis) -> list[tuple[float, str]]:
    if axis in WHOLE:
        return [(tick, str(tick)) for tick in step_ticks(int(until))]
    return [(until * part / 4, spelled(axis, until * part / 4)) for part in (1, 2, 3, 4)]


def _line(curve: Curve, number: int, scale: _Scale) -> Line:
    bands: list[Interval] = [band for band in curve.band if band]
    path = _stairs(curve.at, curve.speedups, scale)
    band = ""
    if len(bands) == len(curve.at):
        upper = _stairs(curve.at, [high for _, high in bands], scale)
        lower = _stairs_back(curve.at, [low for low, _ in bands], scale)
        band = f"{upper}{lower}Z"
    return Line(curve.arm, number, path, band, text.speedup(curve.speedups[-1]))


def _stairs(at: Sequence[float], values: Sequence[float], scale: _Scale) -> str:
    """A path that goes on level and steps where the next value is reached."""
    path = f"M{scale.x(at[0])} {scale.y(values[0])}"
    return path + "".join(
        f"H{scale.x(place)}V{scale.y(value)}"
        for place, value in zip(at[1:], values[1:], strict=True)
    )


def _stairs_back(at: Sequence[float], values: Sequence[float], scale: _Scale) -> str:
    """The same path from its end to its start, as the rest of an outline."""
    path = f"L{scale.x(at[-1])} {scale.y(values[-1])}"
    places = list(zip(at, values, strict=True))
    for (_, value), (place, _) in zip(places[-2::-1], places[:0:-1], strict=True):
        path += f"H{scale.x(place)}V{scale.y(value)}"
    return path + f"H{scale.x(at[0])}"
