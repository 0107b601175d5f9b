"""Learning rules: adapt, learn, synthesize."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.commands.options import (
    DeviceOption,
    LeastTasksOption,
    MemoryOption,
    ParallelOption,
    TargetOption,
    TechniquesOption,
    TokensOption,
)

app = typer.Typer(rich_markup_mode=None)


@app.command()
def adapt(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The memory to write or add to.")
    ] = Path("memory.toml"),
    model: Annotated[
        str, typer.Option(metavar="PROVIDER:NAME", help="Who attempts tasks and writes rules.")
    ] = "",
    problems: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The tasks, as `adaexplore synthesize` makes them: problems, a file each.",
        ),
    ] = None,
    tasks: Annotated[int, typer.Option(min=1, help="How many tasks, in the order of names.")] = 200,
    memory: MemoryOption = "",
    work: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where runs and cases are. Default: OUTPUT.learning."),
    ] = None,
    budget: TokensOption = "",
    least_tasks: LeastTasksOption = 1,
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
    techniques: TechniquesOption = True,
) -> None:
    """Learn rules about Triton: each with a program that fails so, and one that does not.

    A model attempts each task, once and with one repair, and rules are made of
    what fails. Without --model, you do: prompts wait in files. The same command goes on where it
    was stopped, and with what was answered.
    """
    from adaexplore.core.errors import BadInputError

    if problems is None:
        raise BadInputError("say what to learn on: adaexplore adapt --problems DIR")
    from adaexplore.cli import adapt_tasks as by_tasks

    status = by_tasks.adapt_by_tasks(
        problems,
        tasks=tasks,
        model=model,
        memory=memory,
        output=output,
        work=work,
        budget=budget,
        least_tasks=least_tasks,
        device=device,
        target=target,
        parallel=parallel,
        techniques=techniques,
    )
    raise typer.Exit(status)


@app.command()
def learn(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Directories of runs that have failures.")
    ],
    memory: Annotated[
        Path, typer.Option(metavar="FILE", help="The memory to write or add to.")
    ] = Path("memory.toml"),
    model: Annotated[
        str, typer.Option(metavar="PROVIDER:NAME", help="Who writes the rules. Default: you do.")
    ] = "",
    asks: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where cases, prompts and replies are kept. Default: MEMORY.learning.",
        ),
    ] = None,
    budget: TokensOption = "",
    least_tasks: LeastTasksOption = 1,
    device: DeviceOption = None,
    target: TargetOption = None,
) -> None:
    """Make rules of what failed in runs, each with a small witness, and a remedy that passes.

    Failures of one cause are taken together and the shortest candidate is reduced while it fails so
    still. A model writes the rule and the remedy; without one, the prompts wait in files: answer
    DIR/ID.1.md in DIR/ID.1.reply.md and run the same command again. Nothing is done twice.
    """
    from adaexplore.cli import learn as commands

    status = commands.learn_from_runs(
        runs,
        memory=memory,
        model=model,
        asks=asks,
        budget=budget,
        least_tasks=least_tasks,
        device=device,
        target=target,
    )
    raise typer.Exit(status)
