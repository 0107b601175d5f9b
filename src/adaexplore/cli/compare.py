"""The command that sets runs side by side: compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Folders of runs, and folders of campaigns."),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY,...",
            help="What makes arms: a setting, or arm, proposer, memory, prompts, language, seed, "
            "folder, version, commit. Default: the arms of a study, or all in which runs of "
            "the same problem differ.",
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
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with curves; it opens offline."),
    ] = None,
) -> None:
    """Set searches side by side, with intervals: how fast, problem by problem, for equal effort.

    Runs are paired by the source of their problem, whatever its file. Different devices, versions
    of torch and Triton, precision classes, and estimates are kept apart. The other arms are
    compared with the arm of the first run.
    """
    import json as json_format
    import shlex

    from adaexplore.cli.terminal.printing import show_table
    from adaexplore.core.files import write_whole
    from adaexplore.core.version import __version__
    from adaexplore.report.compare.html import render_comparison
    from adaexplore.report.compare.tables import comparison_tables
    from adaexplore.run.outcome.comparison import compare_runs

    words = ["adaexplore", "compare", *map(str, runs)]
    for key in by or []:
        words += ["--by", key]
    words += ["--at", at] if at else []
    found = compare_runs(runs, by=by or [], at=at, command=shlex.join(words))
    show_table(comparison_tables(found))
    if json:
        data = {"version": __version__, **found.to_json()}
        write_whole(json, json_format.dumps(data, indent=1, allow_nan=False) + "\n")
        print(json)
    if html:
        write_whole(html, render_comparison(found))
        print(html)
