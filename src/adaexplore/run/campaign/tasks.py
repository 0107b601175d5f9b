"""The tasks of a benchmark in a campaign: chosen by a table, and written into its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import Exclusion
from adaexplore.problems.benchmarks import benchmark_named
from adaexplore.problems.benchmarks.selection import TaskSelection
from adaexplore.run.bench.order import place_task
from adaexplore.run.bench.place import require_data

TASK_KEYS = ("benchmark", "data", "category", "problems", "sample", "sample_seed")
"""Keys of a table that chooses tasks: see `TaskSelection`. `data` begins at the file's folder."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """Chosen tasks: file in the campaign's folder, and category, of each.

    `files` are the texts to write there, and `excluded` what was chosen and left out.
    """

    places: tuple[tuple[str, str], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    excluded: tuple[Exclusion, ...] = ()

    def with_more(self, other: Tasks) -> Tasks:
        """Return these tasks and others."""
        excluded = dict.fromkeys((*self.excluded, *other.excluded))
        files = {**self.files, **other.files}
        return Tasks((*self.places, *other.places), files, tuple(excluded))


def tasks_of(table: Mapping[str, Any], folder: Path) -> Tasks:
    """Return the tasks that a table chooses; paths begin at `folder`.

    Raises `BadInputError` for a table that cannot be understood, or that chooses none.
    """
    benchmark = benchmark_named(str(table["benchmark"]))
    given = table.get("data")
    data = require_data(benchmark, folder / str(given) if given else None)
    selection = TaskSelection(
        categories=_texts(table, "category"),
        lists=_texts(table, "problems"),
        sample=_number(table, "sample"),
        seed=_number(table, "sample_seed"),
    )
    chosen, excluded = selection.of(benchmark.tasks(data), benchmark.excluded(data))
    files: dict[str, str] = {}
    folder_of_all = f"problems/{benchmark.name}/"
    places = tuple((place_task(task, folder_of_all, files), task.category) for task in chosen)
    return Tasks(places, files, tuple(excluded))


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    return tuple(str(one) for one in (value if isinstance(value, list | tuple) else [value]))


def _number(table: Mapping[str, Any], key: str) -> int:
    value = table.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadInputError(f"{key} = {value!r} is no number of at least 0")
    return value
