"""Learning rules: adapt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.options import DeviceOption, ParallelOption, TargetOption

app = typer.Typer(rich_markup_mode=None)


@app.command()
def adapt(
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
        Path, typer.Option("-o", "--output", metavar="FILE", help="The memory to write or add to.")
    ] = Path("memory.toml"),
    model: Annotated[
        str,
        typer.Option(
            metavar="PROVIDER:NAME",
            help="The model that attempts tasks and writes rules. Default: you answer prompts in "
            "files.",
        ),
    ] = "",
    memory: Annotated[
        str,
        typer.Option(
            metavar="MEMORY",
            help="Rules for the prompts: a memory's file, bundled or none. Default: bundled for "
            "Triton, else none.",
        ),
    ] = "",
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of runs, prompts and cases. Default: OUTPUT.learning."
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="LIMIT", help="When to stop asking: 2usd, 500ktok.")
    ] = "",
    least_tasks: Annotated[
        int,
        typer.Option(
            min=1, help="Ask for a rule only where this number of distinct tasks met the failure."
        ),
    ] = 1,
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
    techniques: Annotated[
        bool,
        typer.Option(
            "--techniques/--no-techniques",
            help="Ask each attempt to use a part of Triton, another for each task, that a safe "
            "answer would do without.",
        ),
    ] = True,
) -> None:
    """Learn rules about Triton from failures: of runs, or of attempts at the tasks of --problems.

    Each task gets a first try and one repair. Failures of one cause form a case; the shortest
    candidate is reduced as long as it fails the same way. The model writes the rule and a remedy
    that passes. Without --model the prompts wait in files below the work folder: answer ID.1.md in
    ID.1.reply.md and run the same command again. Nothing is done twice.
    """
    from adaexplore.cli import adapt_view

    options = adapt_view.AdaptOptions(
        output,
        runs or (),
        problems,
        tasks=tasks,
        model=model,
        memory=memory,
        work=work,
        budget=budget,
        least_tasks=least_tasks,
        device=device,
        target=target,
        parallel=parallel,
        techniques=techniques,
    )
    raise typer.Exit(adapt_view.adapt(options))
