"""The command for a whole model: model."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.options import configured

app = typer.Typer(rich_markup_mode=None)
_OF_PROBLEM = ("language", "precision", "seed", "require_custom", "allow_waiting")


@app.command(cls=configured("model", "search", "campaign", "limits", "output", names=_OF_PROBLEM))
def model(
    ctx: typer.Context,
    made: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:MAKE",
            help="A function without arguments that returns (model, calls): a module in eval mode, "
            "and a list of calls or a dictionary of names and calls. A call is a tuple of "
            "arguments, or a dictionary of named arguments.",
        ),
    ],
    rank: Annotated[
        bool, typer.Option("--rank", help="Show the ranking of the modules, and stop.")
    ] = False,
) -> None:
    """Make a whole model faster: find its slow modules, search kernels, keep those that help.

    Runs the calls, and ranks groups of equal modules by the time that they take above their
    roofline. The best few become one campaign, within the budget. Each winner is put into the
    model and stays if the outputs on unseen inputs are right and the model is clearly faster. The
    folder has index.html; the same command with --run goes on with it.
    """
    from adaexplore.core.errors import BadInputError

    file = made.rpartition(":")[0]
    if file and not Path(file).is_file():
        raise BadInputError(f"{file}: no such file")
    from rich.console import Console

    from adaexplore.cli.campaign import search_campaign
    from adaexplore.cli.terminal.printing import say, show_table, stages
    from adaexplore.core.settings.configure import words
    from adaexplore.report.model.tables import outcome_table, ranking_table
    from adaexplore.run.model.optimize import ModelRun
    from adaexplore.run.model.ranked import PAGE
    from adaexplore.run.model.script import made_by
    from adaexplore.run.session import INTERRUPTED

    built, calls = made_by(made)
    run, console = ModelRun.begin(built, calls, ctx.obj), Console()
    show_table(ranking_table(run.ranking), console)
    if rank:
        say(console, str(run.path / PAGE))
        return
    command = shlex.join(["adaexplore", "model", made, *words(ctx.obj)])
    go_on = f"{command} --run {shlex.quote(str(run.path))}"
    status = search_campaign(run.search_folder(command), None, go_on)
    if status == INTERRUPTED:
        raise typer.Exit(status)
    try:
        with stages(console) as listen:
            found = run.finish(listen)
    except KeyboardInterrupt:
        say(console, f"stopped; the search is kept; the same command with --run {run.path} goes on")
        raise typer.Exit(INTERRUPTED) from None
    if found.outcome:
        show_table(outcome_table(found.outcome), console)
    else:
        say(console, "no correct kernel yet: the model is as it was")
    say(console, str(found.page))
    raise typer.Exit(status)
