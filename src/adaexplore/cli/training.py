"""Training data from the command line: `adaexplore export --parquet`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

ParquetOption = Annotated[
    Path | None,
    typer.Option(
        "--parquet",
        metavar="FILE",
        help="Write training data of runs and campaigns, in the form that --form names.",
    ),
]
FormOption = Annotated[
    str,
    typer.Option(
        "--form",
        metavar="FORM",
        help="With --parquet: rl (a row of verl for each problem), sft (the path to each winner as "
        "a conversation), sft-steps (steps with a gain) or preferences (pairs).",
    ),
]
RewardOption = Annotated[
    str,
    typer.Option(
        "--reward",
        metavar="NAME",
        help="With --parquet: log, published, drkernel-staircase, drkernel-weighted, "
        "drkernel-speedup, kernrl or tritonforge. Default: log.",
    ),
]
LicenseOption = Annotated[
    str,
    typer.Option(
        "--license",
        metavar="SPDX",
        help="With --parquet: the licence of problems whose source names none.",
    ),
]
ExcludeOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--exclude",
        metavar="DIR",
        help="With --parquet: leave out the problems in this folder too; repeatable.",
    ),
]
WithBenchmarksOption = Annotated[
    bool,
    typer.Option(
        "--with-benchmarks",
        help="With --parquet: keep problems that are a benchmark's, or may be.",
    ),
]


def export_training_data(
    runs: Sequence[Path],
    target: Path,
    form: str,
    reward: str,
    license_name: str,
    exclude: Sequence[Path],
    *,
    with_benchmarks: bool,
) -> None:
    """Write the file; print what it holds, and one line on what was left out."""
    from adaexplore.core.errors import BadInputError
    from adaexplore.run.training.forms import FORMS
    from adaexplore.run.training.parquet import ExportOptions, write_training_data

    if not form:
        raise BadInputError(f"--parquet needs --form: {', '.join(FORMS)}")
    chosen = ExportOptions(form, reward, license_name, tuple(exclude), with_benchmarks)
    done = write_training_data(runs, target, chosen)
    print(f"{target}: {done.rows} rows of {done.runs} runs")
    if done.left_out:
        print(done.left_out)
