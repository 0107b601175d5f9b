"""Heat maps: problems by arms, rules by problems; their cells and their drawing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from adaexplore.report import text
from adaexplore.report.averages import NO_KERNEL_SPEEDUP
from adaexplore.report.compare.standings import found_by
from adaexplore.report.study.runs import StudyRun

MOST_RULES = 40
"""Rules of a map: those that were told or broken most often."""

_STRONG = math.log(4.0)
"""The `ln` of the speedup with the full colour."""

_LABEL, _COLUMN, _ROW, _HEAD = 250.0, 92.0, 24.0, 30.0
_LABEL_CHARS, _HEAD_CHARS = 36, 13


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Values by row and column; None where there is nothing to show."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A coloured cell with its text and its title; `tone` is a CSS class."""

    x: float
    y: float
    tone: str
    strength: float
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class HeatDrawing:
    """Geometry of a heat map, as the template draws it."""

    width: float
    height: float
    column: float
    row: float
    rows: tuple[tuple[float, str, str], ...]
    columns: tuple[tuple[float, str, str], ...]
    cells: tuple[HeatCell, ...]


def speedup_map(runs: Sequence[StudyRun], arms: Sequence[str]) -> HeatMap:
    """Return the claimed speedups: the geometric mean over the seeds that count."""
    problems = tuple(dict.fromkeys(run.problem for run in runs))

    def value(problem: str, arm: str) -> float | None:
        own = [run for run in runs if (run.problem, run.arm) == (problem, arm) and run.counts]
        return found_by([run.timing for run in own]).speedup

    return _map(problems, tuple(arms), value)


def rule_map(runs: Sequence[StudyRun], what: Literal["shown", "broken"]) -> HeatMap:
    """Return the number of steps that were told a rule, or whose source breaks it, by problem."""
    counts: dict[str, Counter[str]] = {}
    for run in runs:
        for step in run.steps:
            names = step.shown if what == "shown" else step.broken
            counts.setdefault(run.problem, Counter()).update(names)
    total: Counter[str] = Counter()
    for own in counts.values():
        total += own
    rules = tuple(name for name, _ in total.most_common(MOST_RULES))
    return _map(rules, tuple(counts), lambda rule, problem: float(counts[problem][rule]))


def draw(heat: HeatMap, kind: Literal["speedups", "counts"]) -> HeatDrawing:
    """Return the drawing of a map, of speedups or of counts."""
    top = max((value or 0.0 for row in heat.values for value in row), default=0.0)
    cells = []
    for i, (name, row) in enumerate(zip(heat.rows, heat.values, strict=True)):
        for j, (column, value) in enumerate(zip(heat.columns, row, strict=True)):
            looks = _speedup(value) if kind == "speedups" else _count(value, top)
            x, y = _LABEL + j * _COLUMN, _HEAD + i * _ROW
            cells.append(HeatCell(x, y, *looks, title=f"{name}, {column}: {looks[2]}"))
    return HeatDrawing(
        width=_LABEL + _COLUMN * len(heat.columns),
        height=_HEAD + _ROW * len(heat.rows),
        column=_COLUMN,
        row=_ROW,
        rows=_labels(heat.rows, _HEAD + _ROW / 2, _ROW, _LABEL_CHARS),
        columns=_labels(heat.columns, _LABEL + _COLUMN / 2, _COLUMN, _HEAD_CHARS),
        cells=tuple(cells),
    )


def _map(
    rows: tuple[str, ...], columns: tuple[str, ...], value: Callable[[str, str], float | None]
) -> HeatMap:
    values = tuple(tuple(value(row, column) for column in columns) for row in rows)
    return HeatMap(rows, columns, values)


def _labels(
    names: Sequence[str], first: float, step: float, most: int
) -> tuple[tuple[float, str, str], ...]:
    """Return the place, the text and the whole name of each label."""
    return tuple(
        (first + i * step, text.one_line(name, most), name) for i, name in enumerate(names)
    )


def _speedup(value: float | None) -> tuple[str, float, str]:
    if value is None:
        return "none", 0.0, "-"
    if value <= NO_KERNEL_SPEEDUP * (1 + 1e-9):
        return "slower", 1.0, "none"
    strength = min(abs(math.log(value)) / _STRONG, 1.0)
    return "faster" if value > 1 else "slower", round(strength, 3), text.speedup(value)


def _count(value: float | None, top: float) -> tuple[str, float, str]:
    number = value or 0.0
    return "count", round(number / top, 3) if top else 0.0, f"{number:g}" if number else ""


def as_json(heat: HeatMap) -> Mapping[str, Mapping[str, float | None]]:
    """Return the values by row and column."""
    return {
        name: dict(zip(heat.columns, row, strict=True))
        for name, row in zip(heat.rows, heat.values, strict=True)
    }
