"""The command that compares arms: study."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.options import configured, writable

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=configured("problem", "model", "search", "limits", "output"))
def study(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="ARMS.toml", help="A TOML file of arms and problems, or a study to continue."
        ),
    ],
    json: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="OUT", help="Write the figures there, as JSON.", callback=writable
        ),
    ] = None,
) -> None:
    """Search problems with several arms and seeds, in equal shares, and compare the arms.

    The file is a campaign's with [[arm]] tables: a name, and settings in which the arm differs.
    Every run lies in a folder of the study; index.html there compares them. Stop it at any time;
    `adaexplore resume STUDY` continues. With --proposer manual you answer the prompts, in files.
    """
    from adaexplore.cli.campaign import continue_campaign, search_campaign
    from adaexplore.core.settings.configure import words
    from adaexplore.run.campaign.run import begin_order
    from adaexplore.run.study.file import read_study_file
    from adaexplore.store.campaign import is_campaign

    if is_campaign(file):
        raise typer.Exit(continue_campaign(file, ctx.obj, json))
    order = read_study_file(file, ctx.obj)
    command = shlex.join(["adaexplore", "study", str(file), *words(ctx.obj)])
    raise typer.Exit(search_campaign(begin_order(order, command, "study"), json))
