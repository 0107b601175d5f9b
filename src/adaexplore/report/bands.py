"""Geometry of a chart of speedups in bands: the dots of each from the slowest to the fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adaexplore.core.verdict.evaluation import Timing
from adaexplore.report import text
from adaexplore.report.axes import NARROW, WIDE, ChartSize, SpeedupAxis, Tick

_GAP = 14.0


@dataclass(frozen=True, slots=True)
class Speed:
    """A measured speedup to draw: its name, its times and its kind (a CSS class)."""

    name: str
    timing: Timing
    css: str


@dataclass(frozen=True, slots=True)
class SpeedDot:
    """A speedup: its place, its interval, its kind (a CSS class) and its title."""

    x: float
    y: float
    low: float
    high: float
    css: str
    title: str


@dataclass(frozen=True, slots=True)
class Band:
    """The dots of a band from the slowest to the fastest; `number` counts bands from 1."""

    name: str
    left: float
    right: float
    number: int
    dots: tuple[SpeedDot, ...]

    @property
    def middle(self) -> float:
        """Place of the band's name."""
        return round((self.left + self.right) / 2, 1)


@dataclass(frozen=True, slots=True)
class BandsChart:
    """Geometry of a chart of speedups in bands, as the template draws it."""

    size: ChartSize
    baseline_y: float
    y_ticks: tuple[Tick, ...]
    bands: tuple[Band, ...]


def bands_charts(bands: Mapping[str, Sequence[Speed]]) -> list[BandsChart]:
    """Return a wide and a narrow chart of the bands; none where nothing was measured."""
    if not any(bands.values()):
        return []
    return [_chart(bands, size) for size in (WIDE, NARROW)]


def _chart(bands: Mapping[str, Sequence[Speed]], size: ChartSize) -> BandsChart:
    speedups = [speed.timing.speedup for speeds in bands.values() for speed in speeds]
    axis = SpeedupAxis.of(speedups, size.top, size.height - size.bottom)
    width = (size.plot_right - size.left) / len(bands)
    return BandsChart(
        size=size,
        baseline_y=axis.y(1.0),
        y_ticks=axis.ticks,
        bands=tuple(
            _band(name, speeds, number, size.left + number * width, width, axis)
            for number, (name, speeds) in enumerate(bands.items())
        ),
    )


def _band(
    name: str, speeds: Sequence[Speed], number: int, left: float, width: float, axis: SpeedupAxis
) -> Band:
    ordered = sorted(speeds, key=lambda speed: speed.timing.speedup)
    gap = min(_GAP, width / 4)
    inner = width - 2 * gap
    dots = tuple(
        _dot(speed, left + gap + inner * (place + 0.5) / len(ordered), axis)
        for place, speed in enumerate(ordered)
    )
    return Band(name, round(left, 1), round(left + width, 1), number + 1, dots)


def _dot(speed: Speed, x: float, axis: SpeedupAxis) -> SpeedDot:
    timing = speed.timing
    low, high = timing.speedup_ci
    return SpeedDot(
        x=round(x, 1),
        y=axis.y(timing.speedup),
        low=axis.y(low),
        high=axis.y(high),
        css=speed.css,
        title=f"{speed.name}: {text.speedup(timing.speedup)} "
        f"({text.interval(timing.speedup_ci)}) over {text.baseline_name(timing.strongest)}",
    )
