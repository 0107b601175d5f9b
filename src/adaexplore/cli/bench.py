"""The command that judges answers to a benchmark: bench."""

from __future__ import annotations

import json as json_format
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adaexplore.cli.options import configured

if TYPE_CHECKING:
    from adaexplore.core.bench import BenchVerdict
    from adaexplore.core.config import Config
    from adaexplore.report.bench.summary import BenchSummary
    from adaexplore.store.bench import BenchManifest

app = typer.Typer(rich_markup_mode=None)
_PAGE_NAME = "index.html"
_MAY_CHANGE = ("device", "parallel", "budget", "timeout_s", "memory_gb")


@app.command(cls=configured("problem", "output", names=("parallel", "budget")))
def bench(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A benchmark; `list` shows all.")
    ] = "",
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="A checkout of the benchmark.")
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            "--answers",
            metavar="[NAME=]DIR",
            help="A folder of answers, under the folder's name or NAME; repeatable. Level and "
            "number of the problem are found in the paths.",
        ),
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option("--level", "--category", help="Only this part of the benchmark; repeatable."),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(
            "--sample",
            min=0,
            metavar="N",
            help="Answers of each folder, drawn under --seed. 0: all.",
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
    collect_only: Annotated[
        bool,
        typer.Option(
            "--collect-only", help="Write the folder of problems and answers, and judge nothing."
        ),
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", metavar="RUN", help="Continue in the folder of an earlier run."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write the results there, as JSON.")
    ] = None,
) -> None:
    """Judge folders of answers to a benchmark: a table, and a page with pictures.

    The folder of the run holds copies of the problems and the answers, a line of verdicts.jsonl for
    each verdict, and index.html. Stop it at any time; --resume continues, and tries again what
    failed by trouble of the machinery. Exit code 3 if there was such trouble.
    """
    from adaexplore.core.errors import BadInputError
    from adaexplore.run.bench.order import BenchOrder, collect
    from adaexplore.store.bench import read_bench

    if resume:
        if name or answers or data:
            raise BadInputError("--resume continues a folder as it began: give no NAME or answers")
        raise typer.Exit(_judge(resume, read_bench(resume), ctx.obj, json))
    if name in ("", "list"):
        _list()
        return
    from adaexplore.problems.benchmarks import benchmark_named

    order = BenchOrder(
        benchmark=benchmark_named(name),
        collections=_collections(answers or []),
        data=data,
        levels=tuple(level or ()),
        sample=sample,
        seed=ctx.obj.seed,
        or_looser=or_looser,
    )
    path = Path(ctx.obj.run or f"runs/bench-{time.strftime('%Y%m%d-%H%M%S')}")
    manifest = collect(order, path, ctx.obj, shlex.join(["adaexplore", *sys.argv[1:]]))
    if collect_only:
        print(f"{path}: {len(manifest.entries)} answers; judge them with:")
        print(f"  adaexplore bench --resume {shlex.quote(str(path))}")
        return
    raise typer.Exit(_judge(path, manifest, ctx.obj, json))


def _list() -> None:
    from adaexplore.problems.benchmarks import BENCHMARKS

    for each in BENCHMARKS:
        print(f"{each.name}: {each.about}; {each.needs.get}")


def _collections(answers: Sequence[str]) -> dict[str, Path]:
    """Return the folders by name; raise `BadInputError` for none, or for a name given twice."""
    from adaexplore.core.errors import BadInputError

    if not answers:
        raise BadInputError("there is nothing to judge: give a folder of answers by --answers DIR")
    found: dict[str, Path] = {}
    for given in answers:
        name, sign, folder = given.partition("=")
        path = Path(folder if sign else given)
        name = name if sign else path.resolve().name
        if name in found:
            raise BadInputError(f"--answers {given}: {name} is there twice; write NAME=DIR")
        if Path(name).name != name:
            raise BadInputError(f"--answers {given}: {name} is a folder's name, without a /")
        found[name] = path
    return found


class _Progress:
    """A line on stderr for each verdict, with the number of verdicts so far."""

    def __init__(self, done: int, total: int) -> None:
        self._done = done
        self._total = total

    def tell(self, verdict: BenchVerdict) -> None:
        """Print the line of a verdict."""
        from adaexplore.core.text.units import speedup
        from adaexplore.report.bench.summary import timing_of
        from adaexplore.report.bench.tables import problem_name
        from adaexplore.report.text import one_line

        self._done += verdict.is_final
        timing = timing_of(verdict)
        found = verdict.evaluation
        said = found.status if found else f"not judged: {one_line(verdict.unjudged, 80)}"
        gain = f", {speedup(timing.speedup)}" if timing else ""
        where = f"{verdict.entry.collection} {problem_name(verdict)}"
        print(f"{self._done}/{self._total} {where}: {said}{gain}", file=sys.stderr, flush=True)


def _judge(path: Path, manifest: BenchManifest, given: Config, json: Path | None) -> int:
    """Judge until the end, the budget's or Ctrl-C; show and write the results; return the code."""
    from rich.console import Console

    from adaexplore.cli.printing import say, show_table
    from adaexplore.core.errors import InfrastructureError
    from adaexplore.report.bench.tables import bench_tables
    from adaexplore.run.bench.judge import BenchJudging, open_entries
    from adaexplore.run.session import INTERRUPTED

    console, status = Console(), 0
    config = _changed(path, manifest, given)
    total = len(manifest.entries)
    progress = _Progress(total - len(open_entries(path, manifest)), total)
    judging = BenchJudging(path, manifest, config, progress.tell)
    try:
        judging.run()
    except KeyboardInterrupt:
        status = INTERRUPTED
    summary = summarized(path, manifest)
    show_table(bench_tables(summary), console)
    if json:
        _write(json, json_format.dumps(summary.to_json(), indent=1) + "\n")
    say(console, str(write_page(summary, path)))
    if open_entries(path, manifest):
        say(console, f"go on with:\n  adaexplore bench --resume {shlex.quote(str(path))}")
    troubled = any(not verdict.is_final for verdict in summary.verdicts)
    return status or (InfrastructureError.exit_code if troubled else 0)


def _changed(path: Path, manifest: BenchManifest, given: Config) -> Config:
    """Return the configuration of the folder with the fields that may change."""
    from adaexplore.core.config import Config
    from adaexplore.core.configure import option_name
    from adaexplore.core.errors import BadInputError

    began = Config(**manifest.config)
    for name in given.model_fields_set - {"run"}:
        if name not in _MAY_CHANGE and getattr(given, name) != getattr(began, name):
            raise BadInputError(
                f"{option_name(name)}: {path} goes on as it began; it may change "
                f"{', '.join(map(option_name, _MAY_CHANGE))}"
            )
    return given.over(began)


def summarized(path: Path, manifest: BenchManifest) -> BenchSummary:
    """Summarize what is recorded in a folder, on any machine."""
    from adaexplore.core.config import Config
    from adaexplore.report.bench.summary import summarize_bench
    from adaexplore.store.bench import read_verdicts

    return summarize_bench(
        manifest.entries,
        read_verdicts(path, manifest.entries),
        benchmark=manifest.benchmark,
        command=manifest.command,
        precision=Config(**manifest.config).precision,
    )


def write_page(summary: BenchSummary, path: Path, output: Path | None = None) -> Path:
    """Write the page of a judged benchmark; return its path."""
    from adaexplore.report.bench.html import render_bench

    page = output or path / _PAGE_NAME
    _write(page, render_bench(summary))
    return page


def _write(path: Path, text: str) -> None:
    from adaexplore.core.errors import BadInputError

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"cannot write {path}: {error.strerror}") from error
