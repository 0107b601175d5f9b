"""MultiKernelBench as a benchmark: files by category, some with their cases in a file beside them.

Answers lie in one folder, one for each task: `TASK.txt`, a model's reply, or `TASK.py`, a module.
`result.json` there (or `result_<category>.json`) holds the verdicts of its own evaluation.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adaexplore.core.bench import TheirVerdict
from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import (
    Answer,
    BenchmarkNeeds,
    BenchmarkTask,
    Exclusion,
)
from adaexplore.llm.code import ReplyError, extract_code
from adaexplore.problems.benchmarks.forms import read_text
from adaexplore.problems.declared import Declared, with_declared

_NPU = re.compile(r"^\s*import torch_npu\b.*$", re.MULTILINE)
_ON_CPU = Declared(
    labels=(("reference-on-cpu", "its reference moves tensors to the CPU and computes there"),)
)
_SUFFIXES = {".txt", ".py"}


class MultiKernelBenchTasks:
    """The tasks in `reference/<category>/<name>.py`, keyed by name."""

    name = "multikernelbench"
    about = "401 PyTorch modules in 20 categories, 101 of them with several groups of inputs"
    needs = BenchmarkNeeds(
        folder="MultiKernelBench", get="git clone https://github.com/wzzll123/MultiKernelBench"
    )

    def tasks(self, data: Path) -> Sequence[BenchmarkTask]:
        """See `Benchmark.tasks`."""
        return [task for task in _all_tasks(data) if not _why_not(task)]

    def excluded(self, data: Path) -> Sequence[Exclusion]:
        """See `Benchmark.excluded`."""
        found = [(task, _why_not(task)) for task in _all_tasks(data)]
        return [Exclusion(task.key, task.category, why) for task, why in found if why]

    def answers(self, folder: Path, data: Path | None) -> Sequence[Answer]:  # noqa: ARG002
        """See `Benchmark.answers`."""
        if not folder.is_dir():
            raise BadInputError(f"--answers {folder}: no such folder")
        theirs = _verdicts(folder)
        files = [file for file in sorted(folder.iterdir()) if file.suffix in _SUFFIXES]
        return [
            Answer(file.stem, file.name, _module(file), theirs=theirs.get(file.stem))
            for file in files
            if not file.stem.endswith("_cot")  # the thoughts before the reply
        ]


def _all_tasks(data: Path) -> list[BenchmarkTask]:
    roots = [data / "reference", data]
    files = next((some for root in roots if (some := sorted(root.glob("*/*.py")))), [])
    tasks = [_task(file) for file in files if "class Model" in read_text(file)]
    if not tasks or not any((root / "activation").is_dir() for root in roots):
        raise BadInputError(
            f"--data {data}: no folder reference/ of categories; give a clone of "
            "github.com/wzzll123/MultiKernelBench"
        )
    return tasks


def _task(file: Path) -> BenchmarkTask:
    cases = file.with_suffix(".json")
    files = {cases.name: read_text(cases)} if cases.is_file() else {}
    return BenchmarkTask(file.stem, file.parent.name, file.name, _text(read_text(file)), files)


def _text(text: str) -> str:
    """Return the text of a task, without an import of torch_npu that nothing uses."""
    if _NPU.search(text) and not _names_npu(text):
        text = _NPU.sub("", text)
    return with_declared(text, _ON_CPU) if ".cpu()" in text else text


def _names_npu(text: str) -> bool:
    """Return whether code uses torch_npu, or cannot be parsed."""
    try:
        nodes = ast.walk(ast.parse(text))
    except (SyntaxError, ValueError):
        return True
    return any(isinstance(node, ast.Name) and node.id == "torch_npu" for node in nodes)


def _why_not(task: BenchmarkTask) -> str:
    """Return why a task cannot become a problem, empty where it can."""
    if _NPU.search(task.text):
        return "calls torch_npu, which runs on Ascend NPUs alone"
    if "get_input_groups" in task.text and not task.files:
        return f"its cases are missing: no file {task.key}.json beside it"
    return ""


def _module(file: Path) -> str:
    """Return the module in an answer; a reply without one stays as it is, and fails to compile."""
    text = read_text(file)
    if file.suffix == ".py":
        return text
    try:
        return extract_code(text)
    except ReplyError:
        return text


def _verdicts(folder: Path) -> Mapping[str, TheirVerdict]:
    """Return the verdicts beside the answers, by task."""
    found: dict[str, TheirVerdict] = {}
    for file in sorted(folder.glob("result*.json")):
        try:
            rows = json.loads(read_text(file))
            found |= {key: _verdict(row) for key, row in rows.items()}
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise BadInputError(
                f"{file}: no results of MultiKernelBench ({type(error).__name__}: {error})"
            ) from None
    return found


def _verdict(row: Mapping[str, Any]) -> TheirVerdict:
    right = bool(row["correctness"])
    why = row.get("correctness_info") if row["compiled"] else row.get("compile_info")
    said = "correct" if right else str(why or "not correct")
    performance = row.get("performance")  # in ms
    return TheirVerdict(said, right, performance["mean"] * 1e3 if performance else None)
