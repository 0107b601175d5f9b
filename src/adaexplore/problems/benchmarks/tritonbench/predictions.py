"""Answers as TritonBench keeps them: files of JSON lines {"instruction", "predict"}.

The task of a line is told by its prompt, which contains the task's description, or for the channel
G by the gold answer, which lines carry as `label`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.problems.benchmarks.forms import read_text
from adaexplore.problems.benchmarks.scripted.answer import rows_in
from adaexplore.problems.benchmarks.tritonbench.tasks import Checkout, TableRow

_PROMPTS = ("instruction", "prompt")
_START, _END = "Functional Description: ", "Wrapper Entry Information:"
_FENCED = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_NO_KERNEL = 'raise NotImplementedError("there is no kernel for this task")\n'
_ENDINGS = ("<|im_end|>", "<|EOT|>")


@dataclass(frozen=True, slots=True)
class PredictedLine:
    """An answer of a file: `prompt`, the text that was predicted, and where it stands."""

    file: str
    number: int
    prompt: str
    label: str
    predict: str

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{self.file}#{self.number}"


def predictions_in(path: Path) -> Iterator[PredictedLine]:
    """Yield the predictions of a file, or of all files `*.jsonl` of a folder, in order.

    Raises `BadInputError` for a path that is not there or cannot be read.
    """
    if not path.exists():
        raise BadInputError(f"--answers {path}: no such file or folder")
    files = [path] if path.is_file() else sorted(path.rglob("*.jsonl"))
    for file in files:
        place = file.name if path.is_file() else file.relative_to(path).as_posix()
        for number, line in enumerate(read_text(file).splitlines(), 1):
            row = _row(line)
            prompt = next((row[name] for name in _PROMPTS if name in row), None)
            if isinstance(prompt, str) and isinstance(row.get("predict"), str):
                label = row.get("label")
                yield PredictedLine(
                    place,
                    number,
                    prompt,
                    label if isinstance(label, str) else "",
                    row["predict"],
                )


def lines_of(checkout: Checkout, kernels: Mapping[str, str]) -> str:
    """Return a line for each prompt of a channel, with the kernel for its task.

    TritonBench's scripts count a share of the lines, so a task without a kernel has one as well,
    which fails. They find the prompt in the first entry of a line, and for G the gold answer in
    `label`. Raises `BadInputError` where the checkout has no prompts.
    """
    rows = rows_in(read_text(checkout.prompts))
    if not rows:
        raise BadInputError(f"{checkout.prompts}: has no prompts")
    tasks, lines = TaskPrompts(checkout.described), []
    for row in rows:
        asked = PredictedLine("", 0, row["instruction"], row.get("output", ""), "")
        predict = kernels.get(tasks.key_of(asked) or "", _NO_KERNEL)
        line = {"instruction": asked.prompt, "predict": predict, "label": asked.label}
        lines.append(json.dumps(line) + "\n")
    return "".join(lines)


class TaskPrompts:
    """The prompts and the gold answers of tasks, by which a prediction is told."""

    def __init__(self, described: Mapping[str, TableRow]) -> None:
        self._golds = [(_flat(row.gold), key) for key, row in described.items()]
        self._asked = [
            (flat, key)
            for key, row in described.items()
            for text in row.prompts
            if (flat := _flat(text))
        ]

    def key_of(self, one: PredictedLine) -> str | None:
        """Return the task that a prediction answers, None where no task or several fit."""
        gold = _flat(one.label)
        asked = _flat(one.prompt.rpartition(_START)[2].partition(_END)[0])
        return (
            _only({key for text, key in self._golds if gold and text == gold})
            or _only({key for text, key in self._asked if text == asked})
            or self._last_quoted(_flat(one.prompt))
        )

    def _last_quoted(self, prompt: str) -> str | None:
        """Return the task that a prompt quotes last: it may quote others before its own."""
        places = [(prompt.rfind(text), key) for text, key in self._asked]
        last = max((place for place, _ in places), default=-1)
        return _only({key for place, key in places if place == last >= 0})


def _only(keys: set[str]) -> str | None:
    return keys.pop() if len(keys) == 1 else None


def source_of(one: PredictedLine, name: str) -> str:
    """Return the code of a prediction.

    It is the whole text if that is Python, else the last fenced block that defines `name`,
    the last one that is Python, or the whole text for want of any.
    """
    text = one.predict
    for ending in _ENDINGS:
        text = text.replace(ending, "")
    if _names(text) is not None:
        return text
    found: list[str] = _FENCED.findall(text)
    blocks = [(block, _names(block)) for block in reversed(found)]
    python = [(block, names) for block, names in blocks if names]
    whole = [block for block, names in python if name in names]
    return (whole or [block for block, _ in python] or [text])[0]


def _names(source: str) -> set[str] | None:
    """Return the names that a module binds, None for what is no Python."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return None
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {each.asname or each.name for each in node.names}
    return found


def _flat(text: str) -> str:
    return "".join(text.split())


def _row(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}
