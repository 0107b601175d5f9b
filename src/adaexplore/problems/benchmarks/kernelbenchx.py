"""KernelBench-X: PyTorch functions in categories, with scripts that time them, and answers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.bench import TheirVerdict
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Likeness
from adaexplore.core.protocols.benchmark import Answer, BenchmarkNeeds, BenchmarkTask, Exclusion
from adaexplore.core.verdict.labels import FLOAT_WORK
from adaexplore.problems.benchmarks.forms import read_text
from adaexplore.problems.benchmarks.scripted.answer import (
    implementation,
    rows_in,
    with_module,
    without_fences,
)
from adaexplore.problems.benchmarks.scripted.function import UnusableError
from adaexplore.problems.benchmarks.scripted.text import MOST_ELEMENTS, WrittenTask, problem_text
from adaexplore.problems.declared import Declared, with_declared

_TABLE = "kernelbenchx_v1.json"
_GET = "git clone https://github.com/BonnieW05/KernelBenchX"
_TIMED_ON = "h800"
"""The machine of the times that sizes are chosen by; the folders of l20 and 5090 are the same."""

_FINITE = {
    **{"det": 1 << 10, "determinant_lu": 1 << 10, "determinant_via_qr": 1 << 10},
    **{"cholesky_solve": 1 << 11, "solve_and_add_scaled_vector": 1 << 13},
    "matrix_vector_dot": 1 << 19,
}
"""The most elements of inputs whose output is finite: determinants and solutions of larger random
systems overflow float32, larger products float16."""

_INFINITE = {"matrix_multiply_symmetric", "matrix_multiply_and_row_dot"}
"""Tasks whose output overflows float16 at every size that is timed."""

_FORMS = (".py", ".jsonl", ".json")
_INTEGERS = {"int8", "uint8", "int32", "round", "quantize_per_tensor", "quantize_per_channel"}


@dataclass(frozen=True, slots=True)
class _Task:
    """A row of the table, as a problem or with the reason why it is none."""

    category: str
    file: str
    why_not: str = ""
    written: WrittenTask | None = None
    likenesses: tuple[Likeness, ...] = ()

    @property
    def stem(self) -> str:
        return Path(self.file).stem


class KernelBenchXTasks:
    """The tasks of `data/kernelbenchx_v1.json`, keyed by category and file without its suffix."""

    name = "kernelbenchx"
    about = "176 PyTorch functions in fifteen categories, at sizes that their scripts time"
    needs = BenchmarkNeeds(folder="KernelBenchX", get=_GET)

    def tasks(self, data: Path) -> Sequence[BenchmarkTask]:
        """See `Benchmark.tasks`."""
        return [_benchmark_task(task) for task in _tasks(data) if task.written]

    def excluded(self, data: Path) -> Sequence[Exclusion]:
        """See `Benchmark.excluded`."""
        return [
            Exclusion(_key(task), task.category, task.why_not)
            for task in _tasks(data)
            if not task.written
        ]

    def answers(self, folder: Path, data: Path | None) -> Sequence[Answer]:
        """See `Benchmark.answers`.

        The forms are Python files named after their tasks, lines of JSON `{"predict", "file"}` or
        `{"predict", "instruction"}`, and the benchmark's own records of iterations
        (`data/kbx_corpus`) with their verdicts. Raises `BadInputError` without the checkout.
        """
        files = [file for file in _files(folder) if file.suffix in _FORMS]
        if not files:
            return []
        if data is None:
            raise BadInputError(
                f"--answers {folder}: answers to KernelBench-X are bound to their tasks; give a "
                f"clone of github.com/BonnieW05/KernelBenchX by --data"
            )
        known = _Known.of(data)
        return sorted(_answers(files, folder, known), key=lambda each: (each.key, each.place))


@dataclass(frozen=True, slots=True)
class _Known:
    """The tasks of a checkout, by the stem of their files, and the table's descriptions."""

    by_stem: Mapping[str, _Task]
    described: Mapping[str, str]

    @staticmethod
    def of(data: Path) -> _Known:
        rows = _rows(data)
        return _Known(
            {task.stem: task for task in _tasks(data)},
            {_flat(row.get("description", "")): Path(row["file"]).stem for row in rows},
        )

    def task(self, row: Mapping[str, Any]) -> _Task | None:
        """Return the task that a row of answers names: by its file, or by its instruction."""
        if file := row.get("file"):
            return self.by_stem.get(Path(str(file)).stem)
        asked = str(row.get("instruction", "")).partition("Functional Description: ")[2]
        wanted = _flat(asked.partition("Wrapper Entry Information:")[0])
        found = [stem for text, stem in self.described.items() if wanted and wanted in text]
        return self.by_stem[found[0]] if len(found) == 1 else None


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*")) if folder.is_dir() else [folder]


def _answers(files: Sequence[Path], folder: Path, known: _Known) -> Iterator[Answer]:
    for file in files:
        place = file.relative_to(folder).as_posix() if file != folder else file.name
        if file.suffix == ".py" and (task := known.by_stem.get(file.stem)):
            yield _answer(task, place, implementation(read_text(file)))
        elif file.suffix != ".py":
            yield from _of_rows(rows_in(read_text(file)), place, known)


def _of_rows(rows: Sequence[Mapping[str, Any]], place: str, known: _Known) -> Iterator[Answer]:
    recorded: set[tuple[str, str]] = set()
    for number, row in enumerate(rows, 1):
        if isinstance(row.get("predict"), str) and (task := known.task(row)):
            code = implementation(without_fences(row["predict"]))
            yield _answer(task, f"{place}#{number}", code)
        elif task := known.by_stem.get(Path(str(row.get("task_id"))).stem):
            for when in ("before", "after"):
                code = implementation(str(row.get(f"{when}_code") or ""))
                if code.strip() and (task.file, code) not in recorded:
                    recorded.add((task.file, code))
                    yield _answer(task, f"{place}#{number}-{when}", code, _theirs(row[when]))


def _theirs(row: Mapping[str, Any]) -> TheirVerdict:
    said = "passed" if row.get("exe_ok") else "wrong" if row.get("call_ok") else "failed to run"
    return TheirVerdict(said, bool(row.get("exe_ok")), speedup=row.get("speedup"))


def _answer(task: _Task, place: str, code: str, theirs: TheirVerdict | None = None) -> Answer:
    """Return an answer with the module of its task; as it is where there is no such problem."""
    if task.written:
        names = (task.written.name, task.stem)
        code = with_module(code, task.written.text, tuple(dict.fromkeys(names)))
    return Answer(_key(task), place, code, theirs=theirs)


def _tasks(data: Path) -> list[_Task]:
    """Return the tasks of a checkout in the order of its table."""
    return [_task(data, row) for row in _rows(data)]


def _task(data: Path, row: Mapping[str, Any]) -> _Task:
    file = str(row["file"])
    category = Path(file).parent.as_posix()
    script = data / "metrics" / "golden_metrics" / f"{Path(file).stem}_perf.py"
    source = data / "data" / "kernelbenchx" / file
    missing = next((one for one in (source, script) if not one.is_file()), None)
    if missing:
        return _Task(category, file, f"there is no {missing.relative_to(data)}")
    if Path(file).stem in _INFINITE:
        return _Task(category, file, "its reference overflows float16 at every size that is timed")
    try:
        function, times = implementation(read_text(source)), _times(data, Path(file).stem)
        most = _FINITE.get(Path(file).stem, MOST_ELEMENTS)
        written = problem_text(function, read_text(script), most=most, times=times)
    except UnusableError as error:
        return _Task(category, file, str(error))
    return _Task(category, file, written=written, likenesses=tuple(_likenesses(row)))


def _likenesses(row: Mapping[str, Any]) -> Iterator[Likeness]:
    """Yield the bounds that the table prescribes; an entry that is missing takes its default."""
    if given := row.get("precision_thresholds"):
        defaults = (("cosine_sim", 0.99), ("l1_relative", 0.01), ("rmse", 0.01))
        cosine, l1, rmse = (float(given.get(*each)) for each in defaults)
        yield Likeness(cosine, l1, rmse, "KernelBench-X")


def _times(data: Path, stem: str) -> list[float]:
    """Return the benchmark's own times of a task's sizes, in milliseconds; none without them."""
    file = data / "metrics" / "golden_results" / _TIMED_ON / f"{stem}.json"
    rows = rows_in(read_text(file)) if file.is_file() else []
    return [float(row.get("ms", 0.0)) for row in rows]


def _benchmark_task(task: _Task) -> BenchmarkTask:
    written = task.written
    assert written
    labels = dict(written.labels)
    if task.category == "Quantization" and not _names(written.text) & _INTEGERS:
        labels[FLOAT_WORK] = "its reference computes in floating point and quantises nothing"
    declared = Declared(
        workloads=written.workloads, labels=tuple(labels.items()), likenesses=task.likenesses
    )
    text = with_declared(written.text, declared)
    return BenchmarkTask(_key(task), task.category, Path(task.file).name, text)


def _key(task: _Task) -> str:
    return str(Path(task.file).with_suffix(""))


def _names(text: str) -> set[str]:
    """Return the last parts of the names in a source; its comments and strings have none."""
    return {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}


def _rows(data: Path) -> list[dict[str, Any]]:
    """Return the rows of the table of tasks."""
    file = data / "data" / _TABLE
    if not file.is_file():
        raise BadInputError(
            f"--data {data}: no data/{_TABLE}; give a clone of github.com/BonnieW05/KernelBenchX"
        )
    rows = rows_in(read_text(file))
    if not rows or not all("file" in row for row in rows):
        raise BadInputError(f"--data {data}: data/{_TABLE} is no table of tasks")
    return rows


def _flat(text: object) -> str:
    return str(text).replace("\n", "").strip()
