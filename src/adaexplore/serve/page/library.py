"""What the pages show of runs and campaigns, read anew when their records have changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import AdaExploreError, BadInputError
from adaexplore.core.node import busy_s, planned_steps
from adaexplore.core.settings.limits import BudgetLimits
from adaexplore.core.verdict.evaluation import Timing
from adaexplore.report import Summary
from adaexplore.report.calls import CallTotals, summed
from adaexplore.report.campaign.summary import CampaignSummary
from adaexplore.report.run.html import page_variables
from adaexplore.report.study.summary import StudySummary
from adaexplore.run.campaign.recorded import recorded
from adaexplore.run.outcome.results import summary_of
from adaexplore.serve.page.shelf import Entry
from adaexplore.store import RunDirectory, read_run
from adaexplore.store.campaign import read_manifest
from adaexplore.store.directory import DATABASE_NAME, URL_NAME, is_run

_KEPT = 32
"""Large readings that stay in memory; the small ones of all entries do."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a search, or of a campaign over all of its searches.

    `headline` is the claim in one line, `timing` its measurement. `waiting` counts the prompts that
    wait for an answer, `queued` the candidates that wait for their evaluation, `in_flight` all
    steps under way. `ended` is true where no step is left. `error` says why there are no figures.
    """

    problem: str = ""
    proposer: str = ""
    headline: str = ""
    verdict: str = "empty"
    timing: Timing | None = None
    made: int = 0
    planned: int = 0
    problems: int = 1
    waiting: int = 0
    queued: int = 0
    in_flight: int = 0
    by_hand: bool = False
    ended: bool = False
    device_s: float = 0.0
    busy_s: float = 0.0
    spent: CallTotals = field(default_factory=CallTotals)
    limits: BudgetLimits = field(default_factory=BudgetLimits)
    created_at: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class RunReading:
    """A run as its page shows it: the variables of its report, and its figures."""

    variables: dict[str, Any]
    figures: Figures


def pulse(path: Path) -> str:
    """Return a text that changes whenever records are added to a run or a campaign."""
    found = []
    for name in (DATABASE_NAME, f"{DATABASE_NAME}-wal", "campaign.json"):
        with suppress(OSError):
            stat = (path / name).stat()
            found.append(f"{name}:{stat.st_mtime_ns}:{stat.st_size}")
    if (path / URL_NAME).is_file():
        with suppress(AdaExploreError), read_run(path) as directory:
            asks = directory.store.asks("open", "queued")
            found.append(f"{directory.store.node_count()}:{directory.store.ask_count()}:{asks}")
    return "|".join(found)


class Library:
    """Readings of entries, each made once for each state of the records; for all threads."""

    def __init__(self) -> None:
        self._reading = threading.Lock()  # a large reading may take seconds
        self._counting = threading.Lock()
        self._figures: dict[str, tuple[str, Figures]] = {}
        self._large: OrderedDict[tuple[str, str], tuple[str, Any]] = OrderedDict()

    def figures(self, entry: Entry, runs: list[Entry]) -> Figures:
        """Return the figures of an entry; `runs` are those of a campaign."""
        if entry.kind == "campaign":
            return _together([self.figures(run, []) for run in runs], entry)
        now = pulse(entry.path)
        with self._counting:
            known = self._figures.get(entry.key)
            if known is None or known[0] != now:
                known = self._figures[entry.key] = now, _figures_of(entry.path)
            return known[1]

    def run(self, entry: Entry) -> RunReading:
        """Return what the page of a run shows; raise `BadInputError` for one that is damaged."""
        found: RunReading = self._read(entry, "run", pulse(entry.path), lambda: _run(entry))
        return found

    def summary(self, entry: Entry) -> Summary:
        """Return the summary of a run; raise as `run` does."""
        found: Summary = self.run(entry).variables["summary"]
        return found

    def campaign(self, entry: Entry, runs: list[Entry]) -> CampaignSummary | StudySummary:
        """Return the summary of a campaign or a study; raise as `run` does."""
        now = "".join(map(pulse, [entry.path, *(run.path for run in runs)]))
        found: CampaignSummary | StudySummary = self._read(
            entry, "campaign", now, lambda: _campaign(entry)
        )
        return found

    def _read(self, entry: Entry, what: str, now: str, read: Callable[[], Any]) -> Any:
        with self._reading:
            known = self._large.get((entry.key, what))
            if known is None or known[0] != now:
                known = now, read()
            self._large[entry.key, what] = known
            self._large.move_to_end((entry.key, what))
            while len(self._large) > _KEPT:
                self._large.popitem(last=False)
            return known[1]


def _run(entry: Entry) -> RunReading:
    with read_run(entry.path) as directory:
        summary = summary_of(directory.store, entry.path)
        figures = _figures(directory, summary)
    info = replace(summary.info, name=Path(entry.name).name, directory=entry.name)
    return RunReading(page_variables(replace(summary, info=info)), figures)


def _figures_of(path: Path) -> Figures:
    if not is_run(path):
        return Figures(headline="No step has been recorded yet.")
    try:
        with read_run(path) as directory:
            return _figures(directory, summary_of(directory.store, path))
    except AdaExploreError as error:
        return Figures(error=str(error))


def _figures(directory: RunDirectory, summary: Summary) -> Figures:
    run, nodes = directory.store.run(), directory.store.nodes()
    states = [record.state for record in directory.store.asks("open", "queued")]
    by_hand = MANUAL in run.proposers
    made = len(planned_steps(nodes))
    return Figures(
        problem=run.problem.name,
        proposer=summary.info.proposer,
        headline=summary.headline.sentence,
        verdict=summary.headline.verdict,
        timing=summary.headline.timing,
        made=made,
        planned=run.steps,
        waiting=states.count("open") if by_hand else 0,
        queued=states.count("queued"),
        in_flight=len(states),
        by_hand=by_hand,
        ended=made >= run.steps,
        device_s=summary.totals.device_s,
        busy_s=max(busy_s(nodes), default=0.0),
        spent=summary.costs.total,
        limits=run.config.limits,
        created_at=run.created_at,
    )


def _together(runs: list[Figures], campaign: Entry) -> Figures:
    """Return the figures of a campaign from those of its runs that have begun."""
    try:
        manifest = read_manifest(campaign.path)
        entries = manifest["order"]["entries"]
        created = float(manifest["created_at"])
    except (AdaExploreError, KeyError, TypeError, ValueError) as error:
        return Figures(error=f"its manifest is damaged: {error}")
    clear = sum(run.verdict == "faster" for run in runs)
    right = sum(run.timing is not None for run in runs)
    return Figures(
        problem=Path(campaign.name).name,
        headline=f"{len(runs)} of {len(entries)} problems begun, {right} with a measured kernel, "
        f"{clear} clearly faster.",
        made=sum(run.made for run in runs),
        planned=sum(run.planned for run in runs),
        problems=len(entries),
        waiting=sum(run.waiting for run in runs),
        queued=sum(run.queued for run in runs),
        in_flight=sum(run.in_flight for run in runs),
        by_hand=any(run.by_hand for run in runs),
        ended=len(runs) == len(entries) and all(run.ended for run in runs),
        device_s=sum(run.device_s for run in runs),
        busy_s=sum(run.busy_s for run in runs),
        spent=summed(CallTotals, [run.spent for run in runs]),
        created_at=created,
    )


def _campaign(entry: Entry) -> CampaignSummary | StudySummary:
    try:
        for each in read_manifest(entry.path)["order"]["entries"]:
            folder = entry.path / each["name"]
            if folder.resolve() != folder or not folder.is_relative_to(entry.path):
                raise BadInputError(f"{each['name']!r} lies outside of the campaign {entry.name}")
        found = recorded(entry.path, reports=False)
        name = Path(entry.name).name
        if isinstance(found, CampaignSummary):
            return replace(found, name=name)
        return replace(found, campaign=replace(found.campaign, name=name))
    except (KeyError, TypeError, ValueError) as error:
        raise BadInputError(f"the manifest of {entry.name} is damaged: {error!r}") from None
