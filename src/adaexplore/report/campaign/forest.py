"""Geometry of a campaign's forest plot: a row for each problem with its winner's interval."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.report import text
from adaexplore.report.axes import SpeedupAxis, Tick
from adaexplore.report.campaign.chart import css_of
from adaexplore.report.campaign.summary import CampaignSummary, Result

_ROW = 24.0
_TOP = 8.0
_BOTTOM = 26.0


@dataclass(frozen=True, slots=True)
class ForestSize:
    """Width of a forest plot, and where its plot begins and ends; names stand before it."""

    name: str
    width: float
    left: float
    right: float
    letters: int
    """Letters of a problem's name that fit."""


WIDE = ForestSize("wide", 1120, 280, 940, 36)
NARROW = ForestSize("narrow", 400, 134, 316, 17)


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A problem: where its speedup and interval lie, its kind (a CSS class) and its claim."""

    result: Result
    name: str
    y: float
    x: float
    low: float
    high: float
    css: str
    claim: str


@dataclass(frozen=True, slots=True)
class Forest:
    """Geometry of a forest plot, as the template draws it."""

    size: ForestSize
    height: float
    plot_bottom: float
    baseline_x: float
    ticks: tuple[Tick, ...]
    rows: tuple[ForestRow, ...]


def forests(summary: CampaignSummary) -> list[Forest]:
    """Return a wide and a narrow plot of the measured winners; none for fewer than two."""
    measured = [result for result in summary.results if result.timing]
    return [_forest(measured, size) for size in (WIDE, NARROW)] if len(measured) > 1 else []


def _forest(results: list[Result], size: ForestSize) -> Forest:
    timings = [result.timing for result in results if result.timing]
    bounds = [bound for timing in timings for bound in (*timing.speedup_ci, timing.speedup)]
    axis = SpeedupAxis.of(bounds, top=size.right, bottom=size.left)  # it lies on its side
    bottom = _TOP + _ROW * len(results)
    return Forest(
        size=size,
        height=bottom + _BOTTOM,
        plot_bottom=bottom,
        baseline_x=axis.y(1.0),
        ticks=axis.ticks,
        rows=tuple(_row(result, place, axis, size) for place, result in enumerate(results)),
    )


def _row(result: Result, place: int, axis: SpeedupAxis, size: ForestSize) -> ForestRow:
    timing = result.timing
    assert timing
    low, high = timing.speedup_ci
    name = result.name
    return ForestRow(
        result=result,
        name=name if len(name) <= size.letters else f"{name[: size.letters - 1]}…",
        y=_TOP + _ROW * (place + 0.5),
        x=axis.y(timing.speedup),
        low=axis.y(low),
        high=axis.y(high),
        css=css_of(result),
        claim=text.claim(timing),
    )
