"""Judging folders of answers to a benchmark, for the command bench."""

from __future__ import annotations

import json as json_format
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adaexplore.core.bench import BenchVerdict
    from adaexplore.core.settings.config import Config
    from adaexplore.report.bench.summary import BenchSummary
    from adaexplore.run.bench.judge import GroupJudge
    from adaexplore.store.bench import BenchManifest

_PAGE_NAME = "index.html"
_MAY_CHANGE = ("device", "parallel", "budget", "timeout_s", "memory_gb")


def collections_of(answers: Sequence[str]) -> dict[str, Path]:
    """Return the folders by name; raise `BadInputError` for a name given twice."""
    from adaexplore.core.errors import BadInputError

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


def judge(path: Path, manifest: BenchManifest, given: Config, json: Path | None) -> int:
    """Judge until the end, the budget's or Ctrl-C; show and write the results; return the code."""
    from rich.console import Console

    from adaexplore.cli.terminal.printing import say, show_table
    from adaexplore.core.errors import InfrastructureError
    from adaexplore.core.files import write_whole
    from adaexplore.report.bench.tables import bench_tables
    from adaexplore.run.bench.judge import BenchJudging, open_entries
    from adaexplore.run.session import INTERRUPTED
    from adaexplore.serve.client import ServiceError

    console, status = Console(), 0
    config = _changed(path, manifest, given)
    total = len(manifest.entries)
    progress = _Progress(total - len(open_entries(path, manifest)), total)
    judging = BenchJudging(
        path, manifest, config, _group_judge(path, manifest, config), progress.tell
    )
    try:
        judging.run()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except (ServiceError, InfrastructureError) as error:  # what is judged is shown all the same
        print(f"adaexplore: {error}", file=sys.stderr)
        status = error.exit_code
    summary = summarized(path, manifest)
    show_table(bench_tables(summary), console)
    if json:
        write_whole(json, json_format.dumps(summary.to_json(), indent=1) + "\n")
    say(console, str(write_page(summary, path)))
    if open_entries(path, manifest):
        say(console, f"go on with:\n  adaexplore bench --resume {shlex.quote(str(path))}")
    troubled = any(not verdict.is_final for verdict in summary.verdicts)
    return status or (InfrastructureError.exit_code if troubled else 0)


def at_server(path: Path, manifest: BenchManifest, server: str) -> BenchManifest:
    """Return the manifest with another address of its service, if one is given."""
    from adaexplore.core.errors import BadInputError

    if server and not manifest.server:
        raise BadInputError(f"--server: {path} goes on as it began, on this machine; leave it out")
    return replace(manifest, server=server or manifest.server)


def _group_judge(path: Path, manifest: BenchManifest, config: Config) -> GroupJudge:
    """Return the judge of the folder: the service where it began, or this machine."""
    if not manifest.server:
        from adaexplore.run.bench.local import LocalGroupJudge

        return LocalGroupJudge(path, config)
    from adaexplore.cli.remote import open_service
    from adaexplore.serve.bench import ServiceGroupJudge

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    return ServiceGroupJudge(path, config, partial(open_service, manifest.server), say)


def _changed(path: Path, manifest: BenchManifest, given: Config) -> Config:
    """Return the configuration of the folder with the fields that may change."""
    from adaexplore.core.errors import BadInputError
    from adaexplore.core.settings.config import Config
    from adaexplore.core.settings.configure import option_name

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
    from adaexplore.core.settings.config import Config
    from adaexplore.report.bench.summary import summarize_bench
    from adaexplore.store.bench import read_verdicts

    return summarize_bench(
        manifest.entries,
        read_verdicts(path, manifest.entries),
        benchmark=manifest.benchmark,
        command=manifest.command,
        precision=Config(**manifest.config).precision,
        left_out=manifest.left_out,
    )


def write_page(summary: BenchSummary, path: Path, output: Path | None = None) -> Path:
    """Write the page of a judged benchmark; return its path."""
    from adaexplore.core.files import write_whole
    from adaexplore.report.bench.html import render_bench

    page = output or path / _PAGE_NAME
    write_whole(page, render_bench(summary))
    return page
