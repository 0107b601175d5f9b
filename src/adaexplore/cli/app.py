"""The command line, put together from its commands."""

from __future__ import annotations

import typer

from adaexplore.cli.commands import asks, learning, memory, results, search

app = typer.Typer(
    name="adaexplore",
    help="Turns a PyTorch module into a faster, verified kernel.\n\n"
    "Start with: adaexplore explore examples/problems/softmax.py",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for group in (search, results, asks, learning):
    app.add_typer(group.app)
app.add_typer(memory.app, name="memory")
