"""Rows for trainers in a Parquet file, without the problems of benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adaexplore.core.errors import BadInputError
from adaexplore.problems.structure.confined import STRUCTURE_PRELOAD, structure_of
from adaexplore.problems.structure.overlap import benchmark_structures
from adaexplore.run.training.forms import FORMS
from adaexplore.run.training.recorded import RecordedRun, recorded_runs
from adaexplore.run.training.rewards import reward_named
from adaexplore.sandbox.process import ForkServer

FormName = Literal["rl", "sft", "sft-steps", "preferences"]


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """The outcome of an export: rows written, runs read, and runs left out with the reason."""

    rows: int
    runs: int
    left_out: Mapping[str, str]


def write_parquet(
    path: Path, target: Path, form: FormName, reward: str, *, with_benchmarks: bool = False
) -> WrittenRows:
    """Write the rows of the runs below `path` into a file.

    Runs of problems with the structure of a benchmark's are left out, and those whose structure
    cannot be told, unless `with_benchmarks`. Raises `BadInputError` for a folder without runs, an
    unknown reward, runs without a row of this form, or a file that cannot be written.
    """
    chosen = reward_named(reward)
    runs = recorded_runs(path)
    left_out = {} if with_benchmarks else _benchmark_problems(runs)
    kept = [run for run in runs if run.name not in left_out]
    rows = list(FORMS[form](kept, chosen))
    if not rows:
        raise BadInputError(f"{path}: {_nothing(form, len(runs), len(left_out))}")
    _write(rows, target)
    return WrittenRows(len(rows), len(runs), left_out)


def _nothing(form: str, runs: int, left_out: int) -> str:
    if left_out == runs:
        return (
            f"all {runs} runs are of problems that are left out, such as a benchmark's; "
            "--with-benchmarks takes them"
        )
    return f"no row of the form {form} in {runs - left_out} runs; runs without a model have none"


def _benchmark_problems(runs: Sequence[RecordedRun]) -> dict[str, str]:
    """Return the runs that data for training must not have, by name, each with the reason."""
    known, told = benchmark_structures(), dict[str, str]()
    with _server() as server:
        for run in runs:
            problem = run.record.problem
            if problem.digest not in told:
                found = structure_of(server, "problem", problem.source)
                why = f"its structure is unknown: {found['why']}" if found["why"] else ""
                told[problem.digest] = why or known.get(found["structure"], "")
    reasons = {run.name: told[run.record.problem.digest] for run in runs}
    return {name: why for name, why in reasons.items() if why}


@contextmanager
def _server() -> Iterator[ForkServer]:
    server = ForkServer.start(STRUCTURE_PRELOAD)
    try:
        yield server
    finally:
        server.close()


def _write(rows: Sequence[Mapping[str, object]], target: Path) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise BadInputError("--parquet needs pyarrow: pip install 'adaexplore[parquet]'") from None
    try:
        parquet.write_table(pyarrow.Table.from_pylist(list(rows)), target)
    except OSError as error:
        raise BadInputError(f"{target}: cannot be written: {error.strerror or error}") from None
