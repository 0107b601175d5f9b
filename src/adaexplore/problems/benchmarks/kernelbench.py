"""KernelBench as a benchmark: a checkout's tasks by level, and the answers of released folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import (
    Answer,
    BenchmarkNeeds,
    BenchmarkTask,
    Exclusion,
)
from adaexplore.problems.benchmarks.forms import answers_in
from adaexplore.sandbox.hub import has_model

_FILE = re.compile(r"(\d+)_\w.*\.py")
_MODEL_NAME = re.compile(r"""^model_name\s*=\s*["']([^"']+)["']""", re.MULTILINE)
_MODELS = re.compile(r"^\s*(?:from|import) transformers\b", re.MULTILINE)


class KernelBenchTasks:
    """The tasks in `level<L>/<number>_<name>.py`, keyed by level and number."""

    name = "kernelbench"
    about = "270 PyTorch modules in four levels"
    needs = BenchmarkNeeds(
        folder="KernelBench",
        get="git clone https://github.com/ScalingIntelligence/KernelBench",
        packages={"transformers": "level 4"},
    )

    def tasks(self, data: Path) -> Sequence[BenchmarkTask]:
        """See `Benchmark.tasks`."""
        return [task for task in _all_tasks(data) if not _why_not(task)]

    def excluded(self, data: Path) -> Sequence[Exclusion]:
        """See `Benchmark.excluded`."""
        found = [(task, _why_not(task)) for task in _all_tasks(data)]
        return [Exclusion(task.key, task.category, why) for task, why in found if why]

    def answers(self, folder: Path, data: Path | None) -> Sequence[Answer]:  # noqa: ARG002 - Benchmark
        """See `Benchmark.answers`; the forms are those of `forms.answers_in`."""
        own = {task.key: task for task in tasks_in(folder / "tasks")}
        return sorted(answers_in(folder, own), key=lambda each: (_number(each.key), each.place))


def _all_tasks(data: Path) -> list[BenchmarkTask]:
    found = tasks_in(data) or tasks_in(data / "KernelBench")
    if not found:
        raise BadInputError(
            f"--data {data}: no file level<L>/<number>_<name>.py; give the folder KernelBench "
            "of a clone of github.com/ScalingIntelligence/KernelBench"
        )
    return found


def _why_not(task: BenchmarkTask) -> str:
    """Return why a task cannot become a problem on this machine, empty where it can."""
    if not _MODELS.search(task.text):
        return ""
    if find_spec("transformers") is None:
        return "needs the package transformers, which is not installed: pip install transformers"
    model = _MODEL_NAME.search(task.text)
    if model and not has_model(model[1]):
        return f"needs the model {model[1]} of the Hugging Face hub: hf download {model[1]}"
    return ""


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
