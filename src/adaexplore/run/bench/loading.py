"""Loading the tasks of a benchmark, to see which become problems."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from adaexplore.core.errors import BadProblemError
from adaexplore.core.protocols.benchmark import BenchmarkTask, Exclusion
from adaexplore.core.settings.config import Config
from adaexplore.run.bench.order import place_task
from adaexplore.run.session import load_problem
from adaexplore.store.directory import write_files


def load_tasks(
    tasks: Sequence[BenchmarkTask], config: Config
) -> Iterator[tuple[BenchmarkTask, Exclusion | None]]:
    """Load every task; yield it with the reason that it is no problem, None where it is one.

    A task that needs other files, or has groups of inputs, is run in a process of its own. No
    reference is called.
    """
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks:
            files: dict[str, str] = {}
            place = place_task(task, "", files)
            write_files(Path(folder), files)
            try:
                load_problem(Path(folder) / place, config)
            except BadProblemError as error:
                yield task, Exclusion(task.key, task.category, str(error).replace(f"{folder}/", ""))
            else:
                yield task, None
