"""Tables of the command bench: the benchmarks on this machine, and the tasks of one."""

from __future__ import annotations

import json as json_format
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from adaexplore.cli.terminal.printing import show_table
from adaexplore.core.files import write_whole
from adaexplore.core.protocols.benchmark import Exclusion
from adaexplore.core.settings.config import Config
from adaexplore.problems.benchmarks import BENCHMARKS, benchmark_named
from adaexplore.problems.benchmarks.selection import TaskSelection
from adaexplore.run.bench.loading import load_tasks
from adaexplore.run.bench.place import BenchmarkState, require_data, state_of


def show_benchmarks(data: Path | None) -> None:
    """Print what is there of every benchmark, what is missing, and how to get it."""
    table = _table("benchmark", "tasks", "data", "missing", "how to get it")
    for benchmark in BENCHMARKS:
        table.add_row(*_cells(state_of(benchmark, data)))
    show_table(table)


def _cells(state: BenchmarkState) -> tuple[str, ...]:
    left_out = f", {state.excluded} left out" if state.excluded else ""
    lacks = [f"{name} ({part})" for name, part in state.missing.items()]
    get = [f"pip install {name}" for name in state.missing]
    if state.data is None:
        lacks, get = ["data", *lacks], [state.benchmark.needs.get, *get]
    return (
        state.benchmark.name,
        f"{state.tasks}{left_out}" if state.data else state.benchmark.about,
        str(state.data or "not found; give it by --data DIR"),
        ", ".join(lacks) or "nothing",
        "; ".join(get),
    )


def show_tasks(
    name: str, data: Path | None, selection: TaskSelection, json: Path | None, load: Config | None
) -> None:
    """Print the number of tasks by category, and every task that is left out with its reason.

    With `load`, every task is loaded under this configuration too.
    """
    benchmark = benchmark_named(name)
    place = require_data(benchmark, data)
    tasks, excluded = selection.of(benchmark.tasks(place), benchmark.excluded(place))
    if load:
        found = list(load_tasks(tasks, load))
        tasks = [task for task, why in found if why is None]
        excluded += [why for _, why in found if why]
    counts = Counter(task.category for task in tasks)
    left_out = Counter(one.category for one in excluded)
    table = _table("category", "tasks", "left out")
    for category in dict.fromkeys((*counts, *left_out)):
        table.add_row(category, str(counts[category]), str(left_out[category]))
    table.add_row("all", str(len(tasks)), str(len(excluded)))
    show_table(table)
    reasons: dict[str, list[Exclusion]] = {}
    for one in excluded:
        reasons.setdefault(one.reason, []).append(one)
    for reason, some in reasons.items():
        keys = [one.key for one in some]
        show_table(Text(f"left out, {len(keys)}: {reason}: {', '.join(keys)}"))
    if json:
        data_of_all = {
            "benchmark": name,
            "tasks": [{"key": task.key, "category": task.category} for task in tasks],
            "excluded": [asdict(one) for one in excluded],
        }
        write_whole(json, json_format.dumps(data_of_all, indent=1) + "\n")


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(head, overflow="fold")
    return table
