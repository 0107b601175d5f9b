"""Commands that read a run or a campaign: show, report, export; and settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.options import RunArg

app = typer.Typer(rich_markup_mode=None)


@app.command()
def show(
    run: RunArg,
    cost: Annotated[
        bool,
        typer.Option(
            "--cost", help="Print the cost of the models: by model, form of step, prompt section."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="With --cost: one JSON object.")] = False,
) -> None:
    """Print the tree of a run: id, parent, step kind, status, time, speedup.

    Of a campaign: its tables, with the results so far of every problem.
    """
    import json as json_format
    from dataclasses import asdict

    from adaexplore.cli.printing import show_table
    from adaexplore.core.errors import BadInputError
    from adaexplore.report.campaign.tables import campaign_tables
    from adaexplore.report.run.cost_tables import cost_tables
    from adaexplore.report.run.terminal import headline, tree_table
    from adaexplore.run.results import summary_of
    from adaexplore.store import read_run
    from adaexplore.store.campaign import is_campaign

    if json and not cost:
        raise BadInputError("--json goes with --cost")
    if is_campaign(run):
        from adaexplore.cli.campaign import recorded

        if cost:
            raise BadInputError(f"--cost: {run} is a campaign; name one of its runs")
        show_table(campaign_tables(recorded(run, reports=False)))
        return
    with read_run(run) as directory:
        summary = summary_of(directory.store, run)
    if json:
        print(json_format.dumps(asdict(summary.costs)))
    elif cost:
        show_table(cost_tables(summary.costs))
    else:
        show_table(tree_table(summary))
        show_table(headline(summary))


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
    """Write the report of a run: one HTML file that opens anywhere, offline.

    Of a campaign: the page of its problems, beside which their reports lie.
    """
    from adaexplore.run.results import summary_of, write_report
    from adaexplore.store import read_run
    from adaexplore.store.campaign import is_campaign

    if is_campaign(run):
        from adaexplore.cli.campaign import recorded, write_page

        print(write_page(recorded(run, reports=True), run, output))
        return
    with read_run(run) as directory:
        summary = summary_of(directory.store, run)
        target = output or directory.report_path
    write_report(summary, target)
    print(target)


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
            help="Leave out the source of the problem, and the prompts that quote it.",
        ),
    ] = False,
) -> None:
    """Write a run as one small file, which show, report and compare take in its place."""
    from adaexplore.core.errors import BadInputError
    from adaexplore.store import export_run, read_run
    from adaexplore.store.exported import SUFFIX

    if not output.name.endswith(SUFFIX):
        raise BadInputError(f"--output {output}: its name has to end in {SUFFIX}")
    with read_run(run) as directory:
        export_run(directory.database_path, output, problem=not without_problem)
    print(output)


@app.command()
def settings() -> None:
    """List every setting: options of the command line, and keys of --set."""
    from rich.table import Table

    from adaexplore.cli.printing import show_table
    from adaexplore.core.config import Config
    from adaexplore.core.configure import group_of, is_option, option_name

    table = Table("setting", "default", "given by", "group", "meaning", box=None)
    for name, field in Config.model_fields.items():
        default = "" if field.default in (None, ()) else str(field.default)
        given_by = option_name(name) if is_option(name) else "--set"
        table.add_row(name, default, given_by, group_of(name), field.description)
    show_table(table)
