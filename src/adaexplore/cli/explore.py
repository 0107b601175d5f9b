"""Commands that make or continue a run: explore, resume."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adaexplore.cli.options import RunArg, ServerOption, configured, problem_path, writable

if TYPE_CHECKING:
    from adaexplore.core.protocols.listener import Event

app = typer.Typer(rich_markup_mode=None)
CHANGES = ("steps", "parallel", "budget", "base_url", "prompts", "allocation", "ray")


@app.command(cls=configured("problem", "model", "search", "limits", "output"))
def explore(
    ctx: typer.Context,
    problem: Annotated[
        Path | None,
        typer.Argument(
            metavar="PROBLEM",
            parser=problem_path,
            help="A Python file in KernelBench form (Model, get_inputs(), get_init_inputs()), or a "
            "dataset of FlashInfer-Bench or SOL-ExecBench with --definition.",
        ),
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Search the example that comes with adaexplore.")
    ] = False,
    server: ServerOption = "",
) -> None:
    """Search for a faster kernel.

    Proposes candidates, verifies each against float64, times each against the strongest of eager
    PyTorch, torch.compile and CUDA graphs at equal precision, and keeps everything in one folder:
    the store, best.py and report.html. Stop it at any time; `adaexplore resume RUN` continues. With
    --proposer manual the prompts wait for you or an agent: take them with `ask`, answer with
    `tell`, then `resume`.
    """
    from adaexplore.core.errors import BadInputError
    from adaexplore.problems import EXAMPLE
    from adaexplore.run import explore as application
    from adaexplore.run.session import load_problem

    source = EXAMPLE if example else problem
    if source is None or (example and problem):
        raise BadInputError("explore takes one problem: a file, or --example")
    if server:
        from adaexplore.cli.remote import explore_there

        explore_there(server, source, ctx.obj)
        return
    try:  # a problem's file is run to read it, and may take long
        loaded = load_problem(source, ctx.obj)
        path = application.run_path(loaded.name, ctx.obj)
        order = application.make_order(loaded, ctx.obj, path, source=source)
    except KeyboardInterrupt:
        raise typer.Exit(_stopped_before_a_run()) from None
    raise typer.Exit(follow_search(application.explore(order), order.path))


@app.command(cls=configured(names=CHANGES, settings=False))
def resume(
    ctx: typer.Context,
    run: RunArg,
    json: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="OUT",
            help="Write the results of a campaign or a study there, as JSON.",
            callback=writable,
        ),
    ] = None,
) -> None:
    """Continue a run or a campaign, or give it more steps or another budget.

    Where prompts are answered by hand, the replies are evaluated.
    """
    from adaexplore.cli.campaign import continue_campaign
    from adaexplore.core.errors import BadInputError
    from adaexplore.run import explore as application
    from adaexplore.store.campaign import is_campaign

    if is_campaign(run):
        raise typer.Exit(continue_campaign(run, ctx.obj, json))
    if json:
        raise BadInputError(
            f"--json: {run} is one run; adaexplore export {run} -o OUT.json.xz writes it"
        )
    raise typer.Exit(follow_search(application.resume(run, ctx.obj), run))


def follow_search(events: Generator[Event], path: Path, *, variants: int = 0) -> int:
    """Show a search until its end or Ctrl-C, then its results; return the exit code.

    `variants` is the number of steps of a search that only tunes.
    """
    from rich.console import Console

    from adaexplore.cli.learning.adapt_view import learn_from_search
    from adaexplore.cli.terminal.printing import how_to_go_on, show_end
    from adaexplore.cli.terminal.progress import SearchProgress
    from adaexplore.core.errors import AdaExploreError
    from adaexplore.core.protocols.listener import follow
    from adaexplore.run.session import INTERRUPTED
    from adaexplore.store import read_run
    from adaexplore.store.directory import is_run

    console, status = Console(), 0
    progress = SearchProgress(console, variants=variants)
    try:
        with progress:
            follow(events, progress)
    except KeyboardInterrupt:
        status = INTERRUPTED
        if not is_run(path):
            return _stopped_before_a_run()
        how_to_go_on(console, path)
    except AdaExploreError:
        if progress.is_open:
            how_to_go_on(console, path)
        raise
    show_end(console, path)
    if not status:
        with read_run(path) as directory:
            if directory.store.run().config.memory_update:
                status = learn_from_search(console, directory)
    return status


def _stopped_before_a_run() -> int:
    from rich.console import Console

    from adaexplore.cli.terminal.printing import say
    from adaexplore.run.session import INTERRUPTED

    say(Console(), "stopped before the first step; no run was made")
    return INTERRUPTED
