"""Learning rules: adapt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.options import DeviceOption, TargetOption, configured, writable

app = typer.Typer(rich_markup_mode=None)
_FIELDS = ("language", "model", "memory", "prompts", "preset", "steps", "budget")


@app.command(cls=configured(names=_FIELDS))
def adapt(
    ctx: typer.Context,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Folders of runs to learn from."),
    ] = None,
    problems: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Attempt the tasks of this folder: problems, a file each."
        ),
    ] = None,
    tasks: Annotated[
        int, typer.Option(min=1, help="Number of tasks, in the order of their names.")
    ] = 200,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The memory to write or add to.",
            callback=writable,
        ),
    ] = Path("memory.toml"),
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of runs, prompts and cases. Default: OUTPUT.learning."
        ),
    ] = None,
    least_tasks: Annotated[
        int,
        typer.Option(
            min=1, help="Ask for a rule only where this number of distinct tasks met the failure."
        ),
    ] = 1,
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Tasks at once; a GPU times one at a time. Default: by the cores, or 1 where the "
            "memory grows from task to task.",
        ),
    ] = None,
    techniques: Annotated[
        bool | None,
        typer.Option(
            "--techniques/--no-techniques",
            help="Ask each task's kernels to use a part of the language, another for each "
            "task, that a safe answer would do without. Default: in attempts, and not where the "
            "memory grows.",
        ),
    ] = None,
) -> None:
    """Learn rules from failures: of runs, or of the tasks of --problems, by default in Triton.

    Each task gets a first try and one repair. Failures of one cause form a case; the shortest
    candidate is reduced as long as it fails the same way. The model writes the rule and a remedy
    that passes. Without --model the prompts wait in files below the work folder: answer ID.1.md in
    ID.1.reply.md and run the same command again. Nothing is done twice.

    With --preset adaexplore-adapt, or --set grow=true, each task is a search, and its failures
    become rules before the next task begins, whose prompts have them. The preset keeps rules
    unchecked, as published; --set learning=checked checks them.
    """
    from adaexplore.cli.learning import adapt_view

    options = adapt_view.AdaptOptions(
        output,
        runs or (),
        problems,
        given=ctx.obj,
        tasks=tasks,
        work=work,
        least_tasks=least_tasks,
        device=device,
        target=target,
        parallel=parallel,
        techniques=techniques,
    )
    raise typer.Exit(adapt_view.adapt(options))
