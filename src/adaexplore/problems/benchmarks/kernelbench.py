"""KernelBench as a benchmark: a checkout's tasks by level, and the answers of released folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import Answer, BenchmarkTask
from adaexplore.problems.benchmarks.forms import answers_in

_FILE = re.compile(r"(\d+)_\w.*\.py")


class KernelBenchTasks:
    """The tasks in `level<L>/<number>_<name>.py`, keyed by level and number."""

    name = "kernelbench"
    about = (
        "270 PyTorch modules in four levels; --data is the folder KernelBench/ of a clone of "
        "github.com/ScalingIntelligence/KernelBench"
    )

    def tasks(self, data: Path) -> Sequence[BenchmarkTask]:
        """See `Benchmark.tasks`."""
        found = tasks_in(data) or tasks_in(data / "KernelBench")
        if not found:
            raise BadInputError(
                f"--data {data}: no file level<L>/<number>_<name>.py; give the folder KernelBench "
                "of a clone of github.com/ScalingIntelligence/KernelBench"
            )
        return found

    def answers(self, folder: Path) -> Sequence[Answer]:
        """See `Benchmark.answers`; the forms are those of `forms.answers_in`."""
        own = {task.key: task for task in tasks_in(folder / "tasks")}
        return sorted(answers_in(folder, own), key=lambda each: (_number(each.key), each.place))


def tasks_in(folder: Path) -> list[BenchmarkTask]:
    """Return the tasks of a folder of levels (`level2` or `level_2`), by level and number."""
    found = []
    for file in folder.glob("level*/*.py"):
        level, number = re.fullmatch(r"level_?(\d+)", file.parent.name), _FILE.fullmatch(file.name)
        if level and number:
            key = f"{level[1]}/{number[1]}"
            text = file.read_text(encoding="utf-8-sig")
            found.append(BenchmarkTask(key, f"level {level[1]}", file.name, text))
    return sorted(found, key=lambda task: _number(task.key))


def _number(key: str) -> tuple[int, ...]:
    return tuple(int(part) for part in key.split("/"))
