"""The options that write data for trainers, and what they print."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import typer

ParquetOption = Annotated[
    Path | None,
    typer.Option(
        "--parquet",
        metavar="FILE",
        help="Write the runs in RUN, or below it, as rows for trainers; problems with the "
        "structure of a benchmark's are left out.",
    ),
]
FormOption = Annotated[
    Literal["rl", "sft", "sft-steps", "preferences"],
    typer.Option(
        "--form",
        help="With --parquet: rl, a task for each problem, as verl reads them; sft, the "
        "conversations that led to each winner; sft-steps, those of steps that gained; "
        "preferences, two replies to one prompt, the better one chosen.",
    ),
]
RewardOption = Annotated[
    str,
    typer.Option(
        "--reward",
        metavar="NAME",
        help="With --parquet: the reward of the rows: log, published, dr-kernel-staircase, "
        "dr-kernel-weighted, dr-kernel-speedup, kernrl or tritonforge.",
    ),
]
WithBenchmarksOption = Annotated[
    bool,
    typer.Option("--with-benchmarks", help="With --parquet: leave out no problem."),
]


def export_parquet(
    run: Path,
    target: Path,
    form: Literal["rl", "sft", "sft-steps", "preferences"],
    reward: str,
    *,
    with_benchmarks: bool,
) -> None:
    """Write the rows, and print how many, and which runs are left out."""
    from adaexplore.run.training.parquet import write_parquet

    done = write_parquet(run, target, form, reward, with_benchmarks=with_benchmarks)
    print(f"{target}: {done.rows} rows of {done.runs - len(done.left_out)} runs")
    for why, count in Counter(done.left_out.values()).items():
        print(f"  left out: {count} run{'s'[: count > 1]}: {why}")
