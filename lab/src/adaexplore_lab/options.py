"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.core import TargetName

RunArg = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
MemoryArg = Annotated[
    str, typer.Argument(metavar="MEMORY", help="A memory's file, or `bundled` for the shipped one.")
]
NewMemoryOption = Annotated[
    Path, typer.Option("-o", "--output", metavar="FILE", help="The memory to write or add to.")
]
DeviceOption = Annotated[
    str | None, typer.Option(help="cpu, cuda or cuda:<index>. Default: a GPU if there is one.")
]
TargetOption = Annotated[
    TargetName | None,
    typer.Option(
        help="Judge without a GPU: the architecture to compile for. Kernels are interpreted on "
        "small sizes; times are estimated. Default there: sm_90."
    ),
]
ParallelOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of judges at work at once; a GPU times one kernel at a time. Default: by the "
        "cores.",
    ),
]
BudgetOption = Annotated[
    str, typer.Option("--budget", metavar="LIMIT", help="When to stop asking: 2usd, 500ktok.")
]
