"""Lines and tables that several commands print."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, RenderableType
from rich.markup import escape

from adaexplore.core.ask import MANUAL
from adaexplore.core.node import planned_steps
from adaexplore.report.run.terminal import headline, tree_table
from adaexplore.run.outcome.results import summary_of
from adaexplore.store import read_run
from adaexplore.store.directory import DATABASE_NAME, URL_NAME

_PIPE_WIDTH = 4096
"""Columns of a table that goes to a file or a pipe: a row is one line, for grep."""


def say(console: Console, text: str) -> None:
    """Print text as it is; a command that is broken into two lines cannot be copied."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def stages(console: Console) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is done next: one line that changes, or a line for each."""
    if not console.is_terminal:
        yield lambda text: say(console, text)
        return
    with console.status("") as status:
        yield lambda text: status.update(escape(text))


def show_table(table: RenderableType, console: Console | None = None) -> None:
    """Print a table: as wide as the terminal, or a line for each row where there is none."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(file=console.file, width=_PIPE_WIDTH)
    console.print(table)


def show_end(console: Console, path: Path) -> None:
    """Print the tree and the headline of a run, and the files in its folder."""
    with read_run(path) as directory:
        summary, run = summary_of(directory.store, path), directory.store.run()
        left = run.steps - len(planned_steps(directory.store.nodes()))
        files = [path / name for name in (DATABASE_NAME, URL_NAME)]
        files += [directory.best_path, directory.report_path]
    show_table(tree_table(summary), console)
    show_table(headline(summary), console)
    say(console, f"{path}: {', '.join(file.name for file in files if file.exists())}")
    if MANUAL in run.proposers and left > 0:
        say(console, f"take prompts with:\n  adaexplore ask {shlex.quote(str(path))} -o asks/")


def how_to_go_on(console: Console, path: Path) -> None:
    """Print the command that continues a stopped run."""
    with read_run(path) as directory:
        done, planned = len(planned_steps(directory.store.nodes())), directory.store.run().steps
    say(
        console,
        f"stopped after {done} of {planned} steps; nothing recorded is lost. Go on with:\n"
        f"  adaexplore resume {shlex.quote(str(path))}",
    )
