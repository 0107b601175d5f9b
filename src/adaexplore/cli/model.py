"""The command for a whole model: model."""

from __future__ import annotations

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
    """Find the modules of a model that faster kernels would help.

    Runs the calls, and ranks groups of equal modules by the time that they take above their
    roofline. The folder has index.html, and a problem for each group that can be searched.
    """
    from rich.console import Console

    from adaexplore.cli.printing import say, show_table
    from adaexplore.core.errors import BadInputError
    from adaexplore.report.model.tables import ranking_table
    from adaexplore.run.model.ranked import PAGE, rank_in_folder
    from adaexplore.run.model.script import made_by

    if not rank:
        raise BadInputError("give --rank: the ranking is all there is so far")
    built, calls = made_by(made)
    path, ranked = rank_in_folder(built, calls, ctx.obj)
    console = Console()
    show_table(ranking_table(ranked.ranking), console)
    say(console, str(path / PAGE))
