"""The forms in which answers to KernelBench were released, told from each other by their paths.

Every form names level and number of the problem:

- `level2/37.py`, `level_2/problem_37.py`, `level_2/task_37.py`, also below other folders
- `level_2_problem_37_sample_0_kernel.py` (KernelBench's own), with the verdicts of its evaluation
  in `eval_results.json` beside it
- `L2/37_NAME/kernel_code.py`, `composed_kernel.py` or `final_kernel.py`, or
  `37_NAME/optimized_kernel_beam_search.py` (Level 1): a function, see `bound_kernel`
- `2/37/custom_code.py` with the reference that it was made for, `ref_code.py`, beside it
- `*.json` of lines `{"level_id", "task_id", "ref_code", "custom_code"}`
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from adaexplore.core.bench import TheirVerdict
from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import Answer, BenchmarkTask
from adaexplore.problems.benchmarks.bound_kernel import FUNCTION, bound
from adaexplore.problems.benchmarks.scripted.answer import defined

_BY_NUMBER = re.compile(r"(?:.*/)?level_?(?P<level>\d+)/(?:problem_|task_)?(?P<number>\d+)\.py")
_SAMPLE = re.compile(
    r"(?:.*/)?level_(?P<level>\d+)_problem_(?P<number>\d+)_sample_(?P<sample>\d+)_kernel\.py"
)
_FUNCTION = re.compile(
    r"(?:.*/)?L(?P<level>\d+)/(?P<number>\d+)_[^/]+/(?:kernel_code|composed_kernel|final_kernel)\.py"
)
_OPTIMISED = re.compile(r"(?:.*/)?0*(?P<number>\d+)_[^/]+/optimized_kernel_beam_search\.py")
_PAIR = re.compile(r"(?:.*/)?(?P<level>\d+)/(?P<number>\d+)/custom_code\.py")
_FORMS = (_BY_NUMBER, _SAMPLE, _FUNCTION, _OPTIMISED, _PAIR)
_NO_CODE = (None, "", "None")
_REFERENCES = ("original.py", "problem.py")
"""The reference that a function was made for, beside it."""


def answers_in(folder: Path, own: Mapping[str, BenchmarkTask]) -> Iterator[Answer]:
    """Yield the answers in a folder; `own` are the tasks that it brings with it, by key.

    A folder `tasks` is no folder of answers. Raises `BadInputError` for a file that cannot be read.
    """
    if not folder.is_dir():
        raise BadInputError(f"--answers {folder}: no such folder")
    theirs = {file.parent: verdicts_in(file) for file in folder.rglob("eval_results.json")}
    for file in sorted(folder.rglob("*.py")):
        place = file.relative_to(folder).as_posix()
        match = next((found for form in _FORMS if (found := form.fullmatch(place))), None)
        if match and not place.startswith("tasks/"):
            level, number = match.groupdict().get("level", "1"), int(match["number"])
            answer = _from_file(file, place, f"{level}/{number}", own)
            sample = match.groupdict().get("sample")
            verdicts = theirs.get(file.parent, {}) if sample else {}
            yield replace(answer, theirs=verdicts.get((number, int(sample or 0))))
    for file in sorted(folder.rglob("*.json")):
        yield from _from_lines(file, file.relative_to(folder).as_posix())


def _from_file(file: Path, place: str, key: str, own: Mapping[str, BenchmarkTask]) -> Answer:
    source = read_text(file)
    reference = next((f for name in _REFERENCES if (f := file.with_name(name)).is_file()), None)
    if reference and FUNCTION in defined(source):
        return Answer(key, place, bound(source, read_text(reference)), adapted=True)
    pair = file.with_name("ref_code.py")
    if file.name == "custom_code.py" and pair.is_file():
        return Answer(key, place, _with_module(source), _task(key, read_text(pair)))
    return Answer(key, place, _with_module(source), own.get(key))


def verdicts_in(file: Path) -> dict[tuple[int, int], TheirVerdict]:
    """Return the verdicts of a file `eval_results.json`, by number of the problem and the sample.

    Raises `BadInputError` for a file in another form.
    """
    try:
        rows = json.loads(read_text(file))
        return {
            (int(number), int(row["sample_id"])): _verdict(row)
            for number, some in rows.items()
            for row in (some if isinstance(some, list) else [some])
        }
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise BadInputError(
            f"{file}: no results of KernelBench ({type(error).__name__}: {error})"
        ) from None


def _verdict(row: Mapping[str, Any]) -> TheirVerdict:
    said = "correct" if row["correctness"] else "not correct" if row["compiled"] else "not compiled"
    runtime = row.get("runtime", -1.0)  # in ms, negative where there is none
    return TheirVerdict(said, bool(row["correctness"]), runtime * 1e3 if runtime > 0 else None)


def _from_lines(file: Path, place: str) -> Iterator[Answer]:
    """Yield the answers of a file of JSON lines; none of a file that holds something else."""
    for line in read_text(file).splitlines():
        row = _parsed(line)
        if row is None:
            return
        if row["custom_code"] not in _NO_CODE:
            key = f"{row['level_id']}/{row['task_id']}"
            source = _with_module(row["custom_code"])
            yield Answer(key, f"{place}#{key}", source, _task(key, row["ref_code"]))


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    wanted = {"level_id", "task_id", "ref_code", "custom_code"}
    return row if isinstance(row, dict) and wanted <= row.keys() else None


def _task(key: str, text: str) -> BenchmarkTask:
    """Return the task that an answer brings with it."""
    level, _, number = key.partition("/")
    return BenchmarkTask(key, f"level {level}", f"{number}_own_reference.py", text)


def _with_module(source: str) -> str:
    """Return the source with a `ModelNew`: its own, or its `Model` under that name."""
    names = defined(source)
    renamed = "Model" in names and "ModelNew" not in names
    return f"{source}\n\nModelNew = Model\n" if renamed else source


def read_text(file: Path) -> str:
    """Return the text of a file; raise `BadInputError` for one that cannot be read."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{file}: cannot be read: {error}") from None
