"""The times that TritonBench measured on an A100, and the sizes that they let a task have."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 150e6
"""Of memory traffic, as TritonBench counts it: 2^24 numbers in and out fit."""
_MOST_SIZES = 1000
"""More than any file of timings has."""


@dataclass(frozen=True, slots=True)
class GoldenTime:
    """The time of a call of their function, and the memory traffic that they count for it."""

    ms: float
    moved_bytes: float


def golden_times(folder: Path, name: str) -> tuple[GoldenTime, ...]:
    """Return the times of a task for its sizes, in their order; none where there is no file.

    Some files have another ending, such as `lu.py.json`.
    """
    files = [folder / f"{name}{ending}" for ending in (".json", ".py.json", "..json")]
    file = next((each for each in files if each.is_file()), None)
    if file is None:
        return ()
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        return tuple(GoldenTime(row["ms"], row["GB/s"] * row["ms"] * 1e6) for row in rows)
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def fitting_times(golden: Sequence[GoldenTime]) -> tuple[float, ...]:
    """Return the milliseconds of a call at each size, infinite where it moves too much memory.

    A time that does not grow says nothing about memory: then only the smallest size fits. Sizes at
    which their call failed have no time, and come last.
    """
    if not golden:
        return ()
    times = [row.ms for row in golden]
    fit = [row.ms if row.moved_bytes <= MOST_BYTES else math.inf for row in golden]
    if max(times) < 2 * min(times):
        fit = times[:1]
    return (*fit, *(math.inf for _ in range(_MOST_SIZES - len(fit))))
