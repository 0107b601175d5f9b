"""Training data as a Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaexplore.core.errors import BadInputError
from adaexplore.problems.overlap.check import left_out_line, overlap_check
from adaexplore.run.training.forms import FORMS, Row
from adaexplore.run.training.recorded import RecordedRun, recorded_runs
from adaexplore.search.named_rewards import REWARDS

if TYPE_CHECKING:
    import pyarrow

_NUMBERS = ("reward", "speedup", "gain", "rejected_reward", "best_reward", "best_speedup")


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A written file: its rows, the runs behind them, and one line on what was left out."""

    rows: int
    runs: int
    left_out: str


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What to export: the form, the reward by name, and the licence of problems that name none.

    Problems that overlap with benchmarks, also with those in the folders `exclude`, are left out
    unless `with_benchmarks`.
    """

    form: str
    reward: str = "log"
    license_name: str = ""
    exclude: tuple[Path, ...] = ()
    with_benchmarks: bool = False


def write_training_data(paths: Sequence[Path], target: Path, chosen: ExportOptions) -> WrittenFile:
    """Write the rows of runs and campaigns to a Parquet file.

    Raises `BadInputError` for an unknown form or reward, for paths that are no runs, where no row
    is left, and where the file cannot be written.
    """
    if chosen.form not in FORMS:
        raise BadInputError(f"--form {chosen.form}: no such form; there are {', '.join(FORMS)}")
    if chosen.reward not in REWARDS:
        known = ", ".join(REWARDS)
        raise BadInputError(f"--reward {chosen.reward}: no such reward; there are {known}")
    if find_spec("pyarrow") is None:
        raise BadInputError("pyarrow cannot be imported; pip install 'adaexplore[parquet]'")
    runs = list(recorded_runs(paths, chosen.license_name))
    kept, left_out = (runs, "") if chosen.with_benchmarks else _free(runs, chosen.exclude)
    rows = list(FORMS[chosen.form](kept, chosen.reward))
    if not rows:
        why = left_out or "no step of them gives one"
        raise BadInputError(f"no row of form {chosen.form} in {len(runs)} runs: {why}")
    _write(rows, target)
    return WrittenFile(len(rows), len(kept), left_out)


def _free(runs: list[RecordedRun], exclude: Sequence[Path]) -> tuple[list[RecordedRun], str]:
    """Return the runs whose problems may be trained on, and one line about the others."""
    with ExitStack() as stack:
        check = stack.enter_context(overlap_check(exclude))
        whys = {run.problem.source: check("problem", run.problem.source).why for run in runs}
    return [run for run in runs if not whys[run.problem.source]], left_out_line(whys.values())


def _write(rows: list[Row], target: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([(name, _type(name)) for name in rows[0]])
    table = pyarrow.Table.from_pylist(rows, schema)
    try:
        with target.open("wb") as file:
            parquet.write_table(table, file)
    except OSError as error:
        raise BadInputError(f"cannot write {target}: {error.strerror}") from error


def _type(name: str) -> pyarrow.DataType:
    """Return the type of a column, the same whatever the rows hold."""
    import pyarrow

    text, number = pyarrow.string(), pyarrow.float64()
    message = pyarrow.struct([("role", text), ("content", text)])
    nested: dict[str, Any] = {
        "reward_model": pyarrow.struct([("style", text), ("ground_truth", text)]),
        "extra_info": pyarrow.struct(
            [
                ("index", pyarrow.int64()),
                *((name, text) for name in ("name", "uuid", "entry_point")),
                *((name, text) for name in ("language", "precision", "reward")),
                *((name, number) for name in ("best_reward", "best_speedup")),
            ]
        ),
    }
    if name in nested:
        return nested[name]
    if name in ("prompt", "messages", "chosen", "rejected"):
        return pyarrow.list_(message)
    if name in _NUMBERS:
        return number
    return pyarrow.int64() if name in ("step", "turns") else text
