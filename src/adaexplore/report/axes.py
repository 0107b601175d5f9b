"""Sizes, axes and ticks of the charts.

Coordinates are in SVG user units with the origin at the top left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

FLOOR = 0.05
"""Smallest speedup on an axis; smaller ones are drawn at its lower end."""

TICK_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class ChartSize:
    """Outer size and margins of a chart."""

    name: str
    width: float
    height: float
    left: float = 52
    right: float = 18
    top: float = 18
    bottom: float = 40
    strip: float = 26
    """Height of the strip below the plot for steps without a measurement."""

    @property
    def plot_bottom(self) -> float:
        """Lower end of the plot, where the strip begins."""
        return self.height - self.bottom - self.strip

    @property
    def plot_right(self) -> float:
        """Right end of the plot."""
        return self.width - self.right


WIDE = ChartSize("wide", 1120, 380)
NARROW = ChartSize("narrow", 400, 340, left=44, right=12)


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position on an axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class SpeedupAxis:
    """A logarithmic vertical axis from `low` at `bottom` to `high` at `top`.

    On it, 2x and 0.5x lie equally far from the baseline.
    """

    low: float
    high: float
    top: float
    bottom: float

    @staticmethod
    def of(speedups: Iterable[float], top: float, bottom: float) -> SpeedupAxis:
        """Return an axis for these speedups and the baseline, with some space at both ends."""
        values = [1.0, *speedups]
        low, high = max(min(values), FLOOR), max(values)
        space = max((high / low) ** 0.06, 1.04)
        return SpeedupAxis(low / space, high * space, top, bottom)

    def y(self, speedup: float) -> float:
        """Return the position of a speedup; one outside the range lies at the axis's end."""
        value = min(max(speedup, self.low), self.high)
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.bottom - share * (self.bottom - self.top), 1)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Ticks at round speedups."""
        values = ratio_ticks(self.low, self.high)
        return tuple(Tick(self.y(value), f"{value:g}×") for value in values)


def ratio_ticks(low: float, high: float) -> list[float]:
    """Return about three to nine round speedups from `low` to `high`, always with 1.

    If the range spans a factor of 4 or more, they are powers of two (every second, third, ... where
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
    """Return at most eight round step numbers from 1 to `steps`."""
    if steps <= 8:
        return list(range(1, steps + 1))
    magnitude = 10 ** math.floor(math.log10(steps))
    stride = next(
        stride
        for stride in (magnitude // 5, magnitude // 2, magnitude, 2 * magnitude)
        if stride and steps / stride <= 7
    )
    return [1, *range(stride, steps + 1, stride)] if stride > 1 else list(range(1, steps + 1))
