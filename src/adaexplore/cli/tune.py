"""The command that varies the numbers in a run's best kernel: tune."""

from __future__ import annotations

from typing import Annotated

import typer

from adaexplore.cli.options import RunArg, configured

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=configured(names=("parallel",), settings=False))
def tune(
    ctx: typer.Context,
    run: RunArg,
    variants: Annotated[
        int, typer.Option("-n", "--variants", min=1, help="Variants of the best kernel, in all.")
    ] = 20,
) -> None:
    """Vary the numbers in a run's best kernel: block sizes, warps, stages, unrolling.

    An optimizer proposes, no model is asked, and the steps are recorded beside those planned. Stop
    it at any time; the same command continues.
    """
    from adaexplore.cli.explore import follow_search
    from adaexplore.run import explore as application

    events = application.tune(run, variants, ctx.obj.parallel)
    raise typer.Exit(follow_search(events, run, variants=variants))
