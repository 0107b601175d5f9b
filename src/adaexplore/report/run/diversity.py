"""Diversity over the steps: structures, distances of kernels, and their small chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.core.text.units import plural

WIDTH, HEIGHT = 560, 120
_LEFT, _RIGHT, _TOP, _BOTTOM = 4, 150, 10, 10
_MOST = 400
"""Number of steps above which only a sample is drawn."""


@dataclass(frozen=True, slots=True)
class DiversityPoint:
    """Diversity after a step.

    `structure` is the number of the step's structure, None if it is not correct. `structures`
    counts all structures so far. `distance` is the root mean square distance of correct kernels,
    None for fewer than two.
    """

    structure: int | None
    structures: int
    distance: float | None


@dataclass(frozen=True, slots=True)
class DiversityLine:
    """A line of the chart: its SVG path, and the position and text of its label."""

    name: str
    path: str
    label_y: float
    label: str


def sentence(points: Sequence[DiversityPoint], repeats: int) -> str:
    """Return the diversity in one line; empty without a correct kernel."""
    correct = sum(point.structure is not None for point in points)
    if not correct:
        return ""
    last = points[-1]
    parts = [f"{plural(last.structures, 'structure')} in {plural(correct, 'correct kernel')}"]
    if repeats:
        parts.append(plural(repeats, "repeat"))
    if last.distance is not None:
        parts.append(f"mean distance {last.distance:.2f}")
    return ", ".join(parts)


def lines(points: Sequence[DiversityPoint]) -> list[DiversityLine]:
    """Return the lines of structures and distances over the steps, each on its own scale."""
    drawn = []
    last = points[-1] if points else None
    if last and last.structures:
        values = [float(point.structures) for point in points]
        drawn.append(_line("structures", values, plural(last.structures, "structure")))
    if last and last.distance is not None:
        values = [point.distance or 0.0 for point in points]
        drawn.append(_line("distance", values, f"distance {last.distance:.2f}"))
    if len(drawn) == 2 and abs(drawn[0].label_y - drawn[1].label_y) < 16:
        first, second = drawn
        drawn[1] = DiversityLine(second.name, second.path, first.label_y + 16, second.label)
    return drawn


def _line(name: str, values: Sequence[float], label: str) -> DiversityLine:
    top, steps = max(values) or 1.0, max(len(values) - 1, 1)
    span = WIDTH - _LEFT - _RIGHT
    stride = -(-len(values) // _MOST)
    places = [
        (
            round(_LEFT + span * i / steps, 1),
            round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * value / top, 1),
        )
        for i, value in enumerate(values)
        if i % stride == 0 or i == len(values) - 1
    ]
    path = "M" + "L".join(f"{x} {y}" for x, y in places)
    return DiversityLine(name, path, places[-1][1], label)
