"""The command for many problems: campaign."""

from __future__ import annotations

import json as json_format
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adaexplore.cli.options import ServerOption, configured, writable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from adaexplore.core.settings.config import Config
    from adaexplore.report.campaign.summary import CampaignSummary
    from adaexplore.report.study.summary import StudySummary

app = typer.Typer(rich_markup_mode=None)
_PAGE_NAME = "index.html"


@app.command(cls=configured("problem", "model", "search", "campaign", "limits", "output"))
def campaign(
    ctx: typer.Context,
    what: Annotated[
        list[Path],
        typer.Argument(
            metavar="PROBLEMS",
            help="A TOML file, problem files, datasets of FlashInfer-Bench or SOL-ExecBench, or a "
            "campaign to continue.",
        ),
    ],
    op_type: Annotated[
        str,
        typer.Option(
            "--op-type", metavar="TYPE", help="Only these definitions of a dataset, as rmsnorm."
        ),
    ] = "",
    json: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="OUT", help="Write the results there, as JSON.", callback=writable
        ),
    ] = None,
    server: ServerOption = "",
) -> None:
    """Search many problems within one budget, and spend it where it pays.

    Every problem is a run of its own in one folder; index.html there has the results. Stop it at
    any time; `adaexplore resume CAMPAIGN` continues. With --proposer manual you answer the prompts,
    in files. Exit code 0 also where some problems could not be judged, 3 where the machinery failed
    for some.
    """
    from adaexplore.core.errors import BadInputError
    from adaexplore.run.campaign.run import begin_campaign
    from adaexplore.store.campaign import is_campaign

    if server:
        from adaexplore.cli.remote import campaign_there
        from adaexplore.core.files import write_whole

        summary = campaign_there(server, what, ctx.obj)
        if json:
            write_whole(json, json_format.dumps(summary, indent=1) + "\n")
        return
    there = [path for path in what if is_campaign(path)]
    if there and len(what) > 1:
        raise BadInputError(f"{there[0]} is a campaign: give nothing beside it")
    if there:
        raise typer.Exit(continue_campaign(there[0], ctx.obj, json))
    raise typer.Exit(search_campaign(begin_campaign(what, ctx.obj, op_type), json))


def continue_campaign(path: Path, given: Config, json: Path | None = None) -> int:
    """Continue a campaign with some changes; return the exit code."""
    from adaexplore.run.campaign.run import change_campaign

    change_campaign(path, given)
    return search_campaign(path, json)


def search_campaign(path: Path, json: Path | None, command: str = "") -> int:
    """Search until the end, the budget's or Ctrl-C; then show and write the results.

    `command` goes on with it; without one it is `adaexplore resume`.
    """
    from rich.console import Console

    from adaexplore.cli.terminal.campaign_view import CampaignView
    from adaexplore.cli.terminal.printing import say, show_table
    from adaexplore.core.errors import AdaExploreError, BadInputError, InfrastructureError
    from adaexplore.core.files import write_whole
    from adaexplore.memory.files import load_memory
    from adaexplore.run.campaign.recorded import shown_as
    from adaexplore.run.campaign.run import CampaignRun
    from adaexplore.run.session import INTERRUPTED

    console, status = Console(), 0
    view = CampaignView(console)
    run = CampaignRun(path, view.row, view.say)
    go_on = f"  {command or f'adaexplore resume {shlex.quote(str(path))}'}"
    try:
        with view:
            run.run()
    except KeyboardInterrupt:
        status = INTERRUPTED
        say(console, f"stopped; nothing recorded is lost. Go on with:\n{go_on}")
    except AdaExploreError:
        say(console, f"stopped; nothing recorded is lost. Go on with:\n{go_on}")
        raise
    summary = run.summary("interrupted" if status else "")
    shown = shown_as(run, summary)
    show_table(tables_of(shown), console)
    if json:
        write_whole(json, json_format.dumps(shown.to_json(), indent=1) + "\n")
    say(console, str(write_page(shown, path)))
    if run.memory:
        say(console, f"{run.memory}: {len(load_memory(run.memory))} rules")
    if run.waits:
        where = f"prompts wait in {path / 'asks'}: answer NAME/N.1.md in NAME/N.1.reply.md"
        say(console, f"{where}, and then:\n{go_on}")
    if any(isinstance(error, InfrastructureError) for error in run.lost.values()):
        return status or InfrastructureError.exit_code
    refused = all(result.state in ("refused", "left_out") for result in summary.results)
    return status or (BadInputError.exit_code if refused else 0)


def tables_of(summary: CampaignSummary | StudySummary) -> RenderableType:
    """Return the tables of a campaign or a study, for the terminal."""
    from adaexplore.report.campaign.summary import CampaignSummary
    from adaexplore.report.campaign.tables import campaign_tables
    from adaexplore.report.study.tables import study_tables

    if isinstance(summary, CampaignSummary):
        return campaign_tables(summary)
    return study_tables(summary)


def write_page(
    summary: CampaignSummary | StudySummary, path: Path, output: Path | None = None
) -> Path:
    """Write the page of a campaign or a study; return its path."""
    from adaexplore.core.files import write_whole
    from adaexplore.report.campaign.html import render_campaign
    from adaexplore.report.campaign.summary import CampaignSummary
    from adaexplore.report.study.html import render_study

    page = output or path / _PAGE_NAME
    if isinstance(summary, CampaignSummary):
        write_whole(page, render_campaign(summary))
    else:
        write_whole(page, render_study(summary))
    return page
