"""Looking at runs: show, report, cost, compare, retrace, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.commands.options import (
    RunArg,
)

app = typer.Typer(rich_markup_mode=None)


@app.command()
def show(run: RunArg) -> None:
    """Print the tree of a run: id, parent, step kind, status, time, speedup.

    Of a campaign, its tables: of every problem, what was found so far.
    """
    from adaexplore.cli import campaign_results, inspect
    from adaexplore.store.campaign import is_campaign

    raise typer.Exit(campaign_results.show(run) if is_campaign(run) else inspect.show(run))


@app.command()
def report(
    run: RunArg,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The file to write. Default: RUN/report.html, CAMPAIGN/index.html.",
        ),
    ] = None,
) -> None:
    """Write a run's report: one HTML file that opens anywhere, offline.

    Of a campaign, the page of its problems, beside which lie their reports.
    """
    from adaexplore.cli import campaign_results, inspect
    from adaexplore.store.campaign import is_campaign

    write = campaign_results.report if is_campaign(run) else inspect.report
    raise typer.Exit(write(run, output))


@app.command()
def cost(
    run: RunArg,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print what a run's models cost: by model, by form of step, by section of the prompt."""
    from adaexplore.cli import inspect

    raise typer.Exit(inspect.cost(run, as_json=json))


@app.command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Runs' directories, and campaigns' folders."),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY,...",
            help="What makes arms: a setting, or proposer, memory, prompts, parallel, language, "
            "seed, folder, version, commit. Default: all in which runs of the same problem differ.",
        ),
    ] = None,
    at: Annotated[
        str,
        typer.Option(
            metavar="AMOUNTS",
            help="Where to compare, such as 10,25,50 (steps), 20evaluations, 0.5usd,2usd, 500ktok "
            "or 30min; or only evaluations, usd, tok or s. Default: 10, 25, 50 and 100 steps, as "
            "far as all runs go.",
        ),
    ] = "",
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write it all as JSON.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with curves; it opens offline."),
    ] = None,
) -> None:
    """Set searches side by side, with intervals: how fast, problem by problem, for equal effort.

    Runs are paired by their problem's source, whatever its file. Different devices, versions of
    torch and Triton, precision classes, and estimates are kept apart. The first run's arm is what
    the others are compared with.
    """
    from adaexplore.cli import compare as commands

    asked = commands.Asked(by=by or [], at=at, json=json, html=html)
    raise typer.Exit(commands.compare_runs(runs, asked))


@app.command()
def export(
    run: RunArg,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Ends in .json.xz.")
    ],
    without_problem: Annotated[
        bool,
        typer.Option(
            "--without-problem",
            help="Leave out the problem's source, and the prompts that quote it.",
        ),
    ] = False,
) -> None:
    """Write a run as one small file, which show, cost, report and retrace take in its place."""
    from adaexplore.cli import inspect

    raise typer.Exit(inspect.export(run, output, problem=not without_problem))
