"""Memories: list, show, check, merge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.options import DeviceOption, MemoryArg, ParallelOption, TargetOption, writable

app = typer.Typer(
    help="Look at memories: rules with their witnesses and remedies.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def memory_list(memory: MemoryArg = "bundled") -> None:
    """Print a line for each rule."""
    from adaexplore.cli.learning import memory_view

    raise typer.Exit(memory_view.show_all(memory))


@app.command("show")
def memory_show(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The rule's name.")],
    memory: MemoryArg = "bundled",
) -> None:
    """Print a rule with its programs."""
    from adaexplore.cli.learning import memory_view

    raise typer.Exit(memory_view.show(memory, rule))


@app.command("check")
def memory_check(
    memory: MemoryArg = "bundled",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The file to write the results to. Default: the memory itself, unless bundled.",
            callback=writable,
        ),
    ] = None,
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
    unseen: Annotated[
        bool,
        typer.Option(
            "--unseen", help="Only rules that were never tried on this version and target."
        ),
    ] = False,
) -> None:
    """Run every witness and remedy on the installed Triton; record which rules hold.

    Where a remedy fails at a name that this version lacks, and the error or the memory tells the
    new name, that becomes a rule, and the programs are kept under the new name.

    Lines `statement||count`, as the published search has them, have no programs: each is compared
    with the bundled rules, the like are run, and those that hold become the memory FILE.toml, with
    the lines' counts. Exit code 1 if one does not hold.
    """
    from adaexplore.cli.learning import memory_view

    raise typer.Exit(memory_view.check(memory, output, device, target, parallel, unseen=unseen))


@app.command("merge")
def memory_merge(
    memories: Annotated[
        list[str], typer.Argument(metavar="MEMORY...", help="Files, or bundled; later ones win.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The memory to write.")
    ],
) -> None:
    """Write several memories as one, with the platforms, tasks and support of all."""
    from adaexplore.cli.learning import memory_view

    raise typer.Exit(memory_view.combine(memories, output))
