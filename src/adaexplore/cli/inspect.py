"""Commands that read a run: show, cost, report, settings."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from adaexplore.core.config import Config
from adaexplore.core.errors import BadInputError
from adaexplore.report.run.cost_tables import cost_tables
from adaexplore.report.run.terminal import headline, tree_table
from adaexplore.run.results import summary_of, write_report, write_report_of
from adaexplore.store import RunDirectory, export_run, read_run
from adaexplore.store.exported import SUFFIX


def show(path: Path) -> int:
    """Prints the tree and the headline."""
    console = Console()
    with read_run(path) as run:
        summary = summary_of(run.store, path)
    console.print(tree_table(summary))
    console.print(headline(summary))
    return 0


def cost(path: Path, *, as_json: bool) -> int:
    """Prints what the models cost, as tables or as one JSON object."""
    with read_run(path) as run:
        costs = summary_of(run.store, path).costs
    if as_json:
        print(json.dumps(asdict(costs)))
    else:
        Console().print(cost_tables(costs))
    return 0


def report(path: Path, output: Path | None) -> int:
    """Writes the HTML report and says where."""
    with read_run(path) as run:
        summary = summary_of(run.store, path)
        target = output or run.report_path
    write_report(summary, target)
    print(target)
    return 0


def export(path: Path, output: Path, *, problem: bool) -> int:
    """Writes the run as one file and says where."""
    if not output.name.endswith(SUFFIX):
        raise BadInputError(f"--output {output}: its name has to end in {SUFFIX}")
    with read_run(path) as run:
        export_run(run.database_path, output, problem=problem)
    print(output)
    return 0


def settings() -> int:
    """Prints a table of every setting."""
    table = Table("setting", "default", "meaning", box=None)
    for name, field in Config.model_fields.items():
        table.add_row(name, str(field.default), field.description)
    Console().print(table)
    return 0


def show_end(console: Console, directory: RunDirectory) -> None:
    """Writes the report of a run that is open, and prints the tree and the headline."""
    summary = write_report_of(directory)
    console.print(tree_table(summary))
    console.print(headline(summary))
