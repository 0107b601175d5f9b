"""The tasks of TritonBench, read from a checkout, as the text of problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import OwnTest
from adaexplore.core.verdict.labels import NO_INDEPENDENT_TRUTH
from adaexplore.problems.benchmarks.forms import read_text
from adaexplore.problems.benchmarks.scripted.answer import SEPARATOR, implementation, rows_in
from adaexplore.problems.benchmarks.scripted.function import UnusableError
from adaexplore.problems.benchmarks.scripted.text import WrittenTask, problem_text
from adaexplore.problems.benchmarks.tritonbench.sizes import (
    GoldenTime,
    fitting_times,
    golden_times,
)
from adaexplore.problems.declared import Declared, with_declared

Channel = Literal["T", "G"]


@dataclass(frozen=True, slots=True)
class TableRow:
    """The row of a task in TritonBench's table.

    `prompts` are the texts that its prompts contain, `gold` the answer that it knows.
    """

    category: str
    prompts: tuple[str, ...]
    gold: str


class Checkout:
    """A checkout of TritonBench, as far as one channel needs it.

    Raises `BadInputError`, which names --data, for a folder that is none.
    """

    def __init__(self, data: Path, channel: Channel) -> None:
        self._channel = channel
        self._sources = data / "data" / f"TritonBench_{channel}_v1"
        self._times = data / "performance_metrics" / f"perf_{channel}"
        files = self._sources.glob("*.py") if self._times.is_dir() else ()
        self.keys = sorted(file.stem for file in files)
        if not self.keys:
            raise BadInputError(
                f"--data {data}: no data/TritonBench_{channel}_v1/*.py and performance_metrics/"
                f"perf_{channel} in it; give a clone of github.com/thunlp/TritonBench"
            )

    @cached_property
    def described(self) -> Mapping[str, TableRow]:
        """The rows of the channel's table by the key of their task; none without a table."""
        for ending in ("jsonl", "json"):  # the table of T is a JSON array called .jsonl
            file = self._sources.with_name(f"{self._sources.name}.{ending}")
            if file.is_file():
                return dict(_described(row) for row in rows_in(read_text(file)))
        return {}

    @property
    def prompts(self) -> Path:
        """The file of the channel's detailed prompts."""
        return self._sources.with_name(f"TritonBench_{self._channel}_comp_alpac_v1.json")

    def category(self, key: str) -> str:
        """Return the difficulty that the table gives to a task."""
        row = self.described.get(key)
        return row.category if row else "difficulty unknown"

    def source(self, key: str) -> str:
        """Return the file of a task: its function and, below a line of 146 `#`, its test."""
        return read_text(self._sources / f"{key}.py")

    def test(self, key: str, predict: str, place: int) -> OwnTest:
        """Return TritonBench's own test of what was predicted for a task.

        `place` is that of the timed size. Only for T, their scripts take code out of its fences.
        """
        source = self.source(key)
        code = _unfenced(predict) if self._channel == "T" else predict
        golden = self.golden(key)
        return OwnTest(
            script=f"{code}\n{SEPARATOR}\n{source.rpartition(SEPARATOR)[2]}",
            gold=source,
            golden_us=golden[place].ms * 1e3 if place < len(golden) else None,
        )

    def golden(self, key: str) -> tuple[GoldenTime, ...]:
        """Return the times of a task's own function on an A100, a size each."""
        return golden_times(self._times / "golden_results", key)

    def written(self, key: str) -> WrittenTask:
        """Return a task as a problem; raise `UnusableError` with the reason for none."""
        file = self._times / "golden_metrics" / f"{key}_perf.py"
        if not file.is_file():
            raise UnusableError(f"there is no {file.name} to say how it is called")
        found = problem_text(
            implementation(self.source(key)),
            read_text(file),
            times=fitting_times(self.golden(key)),
            is_kernel=self._channel == "G",
        )
        labels = dict(found.labels)
        if self._channel == "G":
            labels[NO_INDEPENDENT_TRUTH] = "the reference is TritonBench's own Triton kernel"
        declared = Declared(workloads=found.workloads, labels=tuple(labels.items()))
        return replace(found, text=with_declared(found.text, declared))


def _described(row: Mapping[str, Any]) -> tuple[str, TableRow]:
    prompts = [row[name] for name in ("description", "simp_instru", "comp_instru") if name in row]
    category = f"difficulty {row['difficulty']}"
    described = TableRow(category, tuple(prompts), row.get("output", ""))
    return str(row["file"]).removesuffix(".py"), described


def _unfenced(predict: str) -> str:
    """Return what their scripts take for code: all that comes after the last opening fence."""
    if "```python" not in predict:
        return predict
    code = predict.rpartition("```python")[2]
    return code.replace("<|im_end|>", "").replace("<|EOT|>", "")
