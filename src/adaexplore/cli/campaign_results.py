"""What a campaign came to: tables, a page, JSON; on any machine, as far as it is recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from adaexplore.cli.campaign_view import CampaignView
from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import AdaExploreError, BadInputError, BadProblemError
from adaexplore.core.node import busy_s
from adaexplore.report.campaign.html import render_campaign
from adaexplore.report.campaign.summary import (
    CampaignSummary,
    Result,
    State,
    result_of,
    summarize_campaign,
)
from adaexplore.report.campaign.tables import campaign_tables
from adaexplore.run.campaign_file import Entry, Shared
from adaexplore.run.courses import AnsweredCourse, Common, SearchCourse, Servers
from adaexplore.run.proposers import Plan
from adaexplore.run.results import summary_of, write_report
from adaexplore.run.session import INTERRUPTED
from adaexplore.store import read_run
from adaexplore.store.campaign import read_manifest

_PAGE_NAME = "index.html"


def show(path: Path) -> int:
    """Prints the tables of what is recorded."""
    Console().print(campaign_tables(_recorded(path, reports=False)))
    return 0


def report(path: Path, output: Path | None) -> int:
    """Writes the page of what is recorded and says where."""
    target = output or path / _PAGE_NAME
    _write(target, render_campaign(_recorded(path, reports=True)))
    print(target)
    return 0


def show_results(
    console: Console, summary: CampaignSummary, path: Path, output: Path | None
) -> None:
    """Prints the tables, and writes the page and the JSON."""
    console.print(campaign_tables(summary))
    page = path / _PAGE_NAME
    _write(page, render_campaign(summary))
    if output:
        _write(output, json.dumps(summary.to_json(), indent=1) + "\n")
    console.print(str(page), highlight=False, markup=False, soft_wrap=True)


def summarized(
    path: Path,
    shared: Shared,
    command: str,
    courses: Sequence[SearchCourse],
    lost: Mapping[int, AdaExploreError],
    over: int | str | None,
    *,
    reports: bool = True,
) -> CampaignSummary:
    """What the searches have come to; writes the report of each, unless told not to.

    `lost` says which were left out and why, and `over` why none goes on, if so: `INTERRUPTED` or
    what is spent.
    """
    return summarize_campaign(
        [_result(course, lost.get(i), over, reports=reports) for i, course in enumerate(courses)],
        name=path.resolve().name,
        command=command,
        allocation=shared.allocation,
        budget=shared.budget,
        wall_s=max(busy_s([node for course in courses for node in course.nodes()[0]]), default=0.0),
    )


def course_of(
    entry: Entry, path: Path, common: Common, view: CampaignView, turn_steps: int
) -> SearchCourse:
    """The search of one problem, by whoever answers for it."""
    line = view.line(entry.name)
    if MANUAL in entry.proposers:
        return AnsweredCourse(entry, path, common, line, in_flight=turn_steps)
    return SearchCourse(entry, path, common, line)


def _recorded(path: Path, *, reports: bool) -> CampaignSummary:
    manifest = read_manifest(path)
    shared = Shared(**manifest["shared"])
    common, view = Common(plan=Plan(proposers=()), servers=Servers()), CampaignView(Console())
    courses = [
        course_of(Entry.from_json(data), path, common, view, shared.turn_steps)
        for data in manifest["entries"]
    ]
    return summarized(path, shared, manifest["command"], courses, {}, None, reports=reports)


def _result(
    course: SearchCourse, lost: AdaExploreError | None, over: int | str | None, *, reports: bool
) -> Result:
    entry, progress = course.entry, course.progress()
    state: State = "done" if progress.ended else "open"
    reason = progress.ended or (
        "interrupted" if over == INTERRUPTED else str(over or course.waits() or "no steps left")
    )
    if lost:
        state, reason = "refused" if isinstance(lost, BadProblemError) else "broken", str(lost)
    summary = None
    if course.exists:
        with read_run(course.path) as run:
            summary = summary_of(run.store, course.path)
            if reports:
                write_report(summary, run.report_path)
    return result_of(
        entry.name,
        entry.precision,
        course.device,
        state=state,
        reason=reason,
        folder=entry.name if summary else "",
        summary=summary,
    )


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"cannot write {path}: {error.strerror}") from error
