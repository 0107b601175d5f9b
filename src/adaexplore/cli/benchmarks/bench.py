"""The command for benchmarks: bench."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adaexplore.cli.options import ServerOption, configured, writable

if TYPE_CHECKING:
    from adaexplore.core.settings.config import Config
    from adaexplore.problems.benchmarks.selection import TaskSelection

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=configured("problem", "model", "search", "campaign", "limits", "output"))
def bench(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A benchmark; `list` shows all.")
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="A checkout of the benchmark. Default: its folder here, or in benchmarks/.",
        ),
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            "--answers",
            metavar="[NAME=]DIR",
            help="Judge a folder of answers, under the folder's name or NAME; repeatable. Without "
            "it the tasks are searched.",
        ),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option("--category", "--level", help="Only this part of the benchmark; repeatable."),
    ] = None,
    problems: Annotated[
        list[str] | None,
        typer.Option(
            "--problems",
            metavar="LIST",
            help="Only these: a category, then numbers, ranges and patterns of names, such as "
            "'2 1-50,77'; or a file of such lines. Repeatable.",
        ),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(
            "--sample",
            min=0,
            metavar="N",
            help="Tasks, or answers of each folder, drawn under --seed. 0: all.",
        ),
    ] = 0,
    or_looser: Annotated[
        bool,
        typer.Option(
            "--or-looser",
            help="Judge an answer that is wrong by its rounding in the looser precision classes "
            "too, against their baselines.",
        ),
    ] = False,
    tasks: Annotated[
        bool,
        typer.Option("--tasks", help="Count the tasks by category, and name what is left out."),
    ] = False,
    load: Annotated[
        bool,
        typer.Option(
            "--load",
            help="With --tasks: load each too, and count those that become no problem as left out. "
            "Files with groups of inputs are run.",
        ),
    ] = False,
    collect_only: Annotated[
        bool,
        typer.Option(
            "--collect-only",
            help="Write the folder of problems and answers; judge and search nothing.",
        ),
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", metavar="RUN", help="Continue in the folder of an earlier run."),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="OUT", help="Write the results there, as JSON.", callback=writable
        ),
    ] = None,
    server: ServerOption = "",
) -> None:
    """Search the tasks of a benchmark, or judge folders of answers to them.

    Tables by category, and a page with pictures. A search is a campaign over the tasks. The folder
    of judged answers holds copies of the problems and the answers, a line of verdicts.jsonl for
    each verdict, and index.html. Stop at any time; --resume continues, and tries again what failed
    by trouble of the machinery. With --server, a service judges the answers. Exit code 3 if there
    was trouble of the machinery.
    """
    from adaexplore.core.errors import BadInputError
    from adaexplore.core.settings.config import Config
    from adaexplore.problems.benchmarks.selection import TaskSelection

    if server and not (answers or resume):
        raise BadInputError(
            "--server: a service judges answers; give them by --answers DIR, or search problems "
            "there by `adaexplore campaign`"
        )
    if resume:
        if name or answers or data:
            raise BadInputError("--resume continues a folder as it began: give no NAME or answers")
        raise typer.Exit(_continue(resume, ctx.obj, json, server))
    if name in ("", "list"):
        from adaexplore.cli.benchmarks.bench_list import show_benchmarks

        show_benchmarks(data)
        return
    selection = TaskSelection(tuple(category or ()), tuple(problems or ()), sample, ctx.obj.seed)
    if tasks:
        from adaexplore.cli.benchmarks.bench_list import show_tasks

        show_tasks(name, data, selection, json, ctx.obj if load else None)
        return
    path = Path(ctx.obj.run or f"runs/{name}-{time.strftime('%Y%m%d-%H%M%S')}")
    config = ctx.obj.model_copy(update={"run": str(path)})
    if answers:
        _refuse_search(ctx.obj)
        _collect(name, data, answers, selection, config, or_looser=or_looser, server=server)
    elif or_looser:
        raise BadInputError("--or-looser is for answers; give them by --answers DIR")
    else:
        _begin_search(name, data, selection, config)
    if collect_only:
        print(f"{path}: go on with:\n  adaexplore bench --resume {shlex.quote(str(path))}")
        return
    raise typer.Exit(_continue(path, ctx.obj if answers else Config(), json))


def _command() -> str:
    return shlex.join(["adaexplore", *sys.argv[1:]])


def _refuse_search(given: Config) -> None:
    """Raise `BadInputError` for an option that only a search has."""
    from adaexplore.core.errors import BadInputError
    from adaexplore.core.settings.configure import option_fields, option_name

    for field in option_fields("model", "search", "campaign"):
        if field in given.model_fields_set and field != "parallel":
            raise BadInputError(
                f"{option_name(field)}: answers are judged and nothing is searched; leave out "
                "--answers to search"
            )


def _collect(
    name: str,
    data: Path | None,
    answers: Sequence[str],
    selection: TaskSelection,
    config: Config,
    *,
    or_looser: bool,
    server: str,
) -> None:
    from adaexplore.cli.benchmarks.bench_judge import collections_of
    from adaexplore.problems.benchmarks import benchmark_named
    from adaexplore.run.bench.order import BenchOrder, collect
    from adaexplore.run.bench.place import find_data

    benchmark = benchmark_named(name)
    order = BenchOrder(
        benchmark=benchmark,
        collections=collections_of(answers),
        data=data or find_data(benchmark),
        selection=selection,
        or_looser=or_looser,
        server=server,
    )
    if server:
        from adaexplore.cli.remote import require_service
        from adaexplore.serve.bench import require_open

        require_open(config)
        require_service(server)  # before the folder is made
    collect(order, Path(config.run), config, _command())


def _begin_search(name: str, data: Path | None, selection: TaskSelection, config: Config) -> None:
    from adaexplore.run.campaign.run import begin_search

    table = {
        "benchmark": name,
        "data": str(data.absolute()) if data else "",
        "category": selection.categories,
        "problems": selection.lists,
        "sample": selection.sample,
        "sample_seed": selection.seed,
    }
    begin_search(table, config, _command())


def _continue(path: Path, given: Config, json: Path | None, server: str = "") -> int:
    """Continue what the folder holds; return the exit code."""
    from adaexplore.cli.benchmarks.bench_judge import at_server, judge
    from adaexplore.cli.campaign import continue_campaign
    from adaexplore.core.errors import BadInputError
    from adaexplore.store.bench import read_bench
    from adaexplore.store.campaign import is_campaign

    if is_campaign(path):
        if server:
            raise BadInputError(f"--server: {path} is a search, and goes on on this machine")
        return continue_campaign(path, given, json)
    return judge(path, at_server(path, read_bench(path), server), given, json)
