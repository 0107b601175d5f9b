"""The command for a browser: ui."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def ui(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER", help="Folders of runs and campaigns. Default: runs."),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 8720,
    browser: Annotated[bool, typer.Option(help="Open the pages in the browser.")] = False,
) -> None:
    """Show campaigns and searches in a browser as they run, until Ctrl-C.

    The pages are for this machine alone and need no token; they read the folders, answer prompts,
    and stop or continue searches. A search that begins later appears by itself.
    """
    from adaexplore.cli.serve import require_packages
    from adaexplore.core.errors import BadInputError

    for folder in folders or []:
        if not folder.is_dir():
            raise BadInputError(f"{folder}: no such folder; name one that holds runs")
    require_packages()
    from adaexplore.serve.page.app import run_pages

    run_pages(
        folders or [Path("runs")], port, browser=browser, say=lambda line: print(line, flush=True)
    )
