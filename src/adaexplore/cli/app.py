"""The command line, put together from its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from adaexplore.cli import (
    answers,
    cache,
    campaign,
    compare,
    evaluate,
    explore,
    jobs,
    model,
    results,
    serve,
    ship,
    study,
    tune,
    ui,
)
from adaexplore.cli.benchmarks import bench
from adaexplore.cli.learning import adapt, memory
from adaexplore.core.version import __version__

app = typer.Typer(
    name="adaexplore",
    help="Turns a PyTorch module into a faster, verified kernel.\n\n"
    "Start with: adaexplore explore --example",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"adaexplore {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Turns a PyTorch module into a faster, verified kernel.

    Start with: adaexplore explore --example
    """


for module in (
    explore,
    model,
    campaign,
    study,
    evaluate,
    bench,
    tune,
    results,
    compare,
    ship,
    answers,
    adapt,
    ui,
):
    app.add_typer(module.app)
app.add_typer(memory.app, name="memory")
app.add_typer(serve.app, name="serve")
app.add_typer(jobs.app, name="jobs")
app.add_typer(cache.app, name="cache")
