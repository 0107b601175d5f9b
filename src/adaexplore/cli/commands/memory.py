"""Memories: list, show, check, lift, diff, export, import, merge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.commands.options import (
    DeviceOption,
    MemoryArg,
    ParallelOption,
    TargetOption,
)

app = typer.Typer(
    help="Look at memories: rules with their witnesses and remedies.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def memory_list(memory: MemoryArg = "bundled") -> None:
    """Print a line for each rule."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.show_all(memory))


@app.command("show")
def memory_show(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The rule's name.")],
    memory: MemoryArg = "bundled",
) -> None:
    """Print a rule with its programs."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.show(memory, rule))


@app.command("check")
def memory_check(
    memory: MemoryArg = "bundled",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to note what was seen. Default: in the memory itself, unless bundled.",
        ),
    ] = None,
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
    unseen: Annotated[
        bool, typer.Option("--unseen", help="Only rules that were never tried here.")
    ] = False,
) -> None:
    """Run every witness and remedy on the installed versions; note which rules hold, or are gone.

    Exit code 1 if one does not hold.
    """
    from adaexplore.cli import adapt as commands

    raise typer.Exit(commands.check(memory, output, device, target, parallel, unseen=unseen))


@app.command("diff")
def memory_diff(old: MemoryArg, new: MemoryArg) -> None:
    """Print which rules were added, removed or changed. Exit code 1 if any."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.diff(old, new))


@app.command("export")
def memory_export(
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Ends in .json, .md or .txt, which says how."
        ),
    ],
    memory: MemoryArg = "bundled",
) -> None:
    """Write a memory as JSON, as a page to read, or as AdaExplore's statement||count lines."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.export(memory, output))


@app.command("merge")
def memory_merge(
    memories: Annotated[
        list[str], typer.Argument(metavar="MEMORY...", help="Files, or bundled; later ones win.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The memory to write.")
    ],
) -> None:
    """Write several memories as one: places, tasks and support of all are kept."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.combine(memories, output))
