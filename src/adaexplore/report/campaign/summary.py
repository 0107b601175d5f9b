"""The summary of a campaign, computed once; renderers only draw it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from adaexplore.core.problem import PRECISIONS, Precision
from adaexplore.core.verdict.evaluation import Passed, Timing
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.core.verdict.labels import ALGEBRA, set_apart, winner_set_apart
from adaexplore.report.averages import Averages, averages
from adaexplore.report.calls import summed
from adaexplore.report.run.headline import Verdict
from adaexplore.report.run.summary import Summary

State = Literal["done", "open", "refused", "broken", "left_out"]
"""Finished; unfinished, with steps left; refused by the judge; broken by the machine; or left out
of its benchmark."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Costs of a search.

    `usd` sums the calls with a known price; `unpriced` counts the others. `device_s` is the time
    the device was held exclusively. `work_s` sums the times of proposals and evaluations, which may
    overlap.
    """

    usd: float = 0.0
    unpriced: int = 0
    calls: int = 0
    tokens: int = 0
    device_s: float = 0.0
    work_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one problem of a campaign.

    `folder` is the run's folder, empty without a run. `reason` explains the `state`. `claimed` is
    the claimed measurement of the winner (see `Headline`). `labels` are the problem's labels, each
    with the reason why its speedup is worth less. `category` is that of a benchmark's task.
    """

    name: str
    precision: Precision
    device: str
    state: State
    reason: str
    folder: str = ""
    steps: int = 0
    correct_steps: int = 0
    verdict: Verdict = "empty"
    claimed: Passed | None = None
    confirmed: bool = False
    labels: Mapping[str, str] | None = None
    spent: Spending = Spending()
    category: str = ""

    @property
    def timing(self) -> Timing | None:
        """Times of the claimed measurement."""
        return self.claimed.measured if self.claimed else None

    @property
    def by_algebra(self) -> bool:
        """True if the winner needs less than the reference's work."""
        return self.claimed is not None and ALGEBRA in self.claimed.labels

    @property
    def left_open(self) -> bool:
        """True if the measurement does not tell whether the winner is faster."""
        return self.verdict in ("too_noisy", "unproven")

    @property
    def set_apart(self) -> bool:
        """True if a label of the problem or of the winner keeps it out of the ordinary means."""
        own = self.claimed is not None and winner_set_apart(self.claimed.labels)
        return own or set_apart(self.labels or ())

    @property
    def judged(self) -> bool:
        """True if at least one candidate of the problem was judged."""
        return self.steps > 0


@dataclass(frozen=True, slots=True)
class CampaignGroup:
    """Judged problems of one precision class, either all set apart by a label or none.

    `reached` counts the precision classes of the winners. `faster` counts the winners whose
    interval lies above 1. `unmeasured` counts correct problems that were judged without the device,
    and `left_open` those whose interval, by noise or because calls are too short, leaves open if
    the winner is faster: they are in no average, and there are no averages if no others are left.
    Averages are of what may be claimed (see `Timing.claim`). `by_algebra` counts the winners that
    need less than the reference's work; where there are some, the averages `without` them stand
    beside the others.
    """

    precision: Precision
    labelled: bool
    results: tuple[Result, ...]
    correct: int
    unmeasured: int
    left_open: int
    faster: int
    reached: Mapping[Precision, int]
    like_for_like: Averages | None
    over_eager: Averages | None
    by_algebra: int = 0
    like_for_like_without: Averages | None = None
    over_eager_without: Averages | None = None


@dataclass(frozen=True, slots=True)
class CategoryRow:
    """The chosen tasks of a benchmark in one category, or in all (`category` is empty).

    Of `problems` tasks, `judged` were searched; the others were left out, refused or not begun.
    `right` have a correct kernel, and `faster` a clearly faster one; `left_open` are right ones
    whose interval leaves open if they are faster. The averages are over the other judged ones
    without a label; `labelled` are the right ones with one.
    """

    category: str
    problems: int
    judged: int
    right: int
    faster: int
    left_open: int
    like_for_like: Averages | None
    over_eager: Averages | None
    labelled: int


@dataclass(frozen=True, slots=True)
class CampaignSummary:
    """The summary of a campaign.

    `groups` hold the judged problems, labelled ones apart; `unjudged` are the others. `wall_s` is
    the time during which at least one step was in progress. `categories` are those of a
    benchmark's tasks, with a last row for all where there are several.
    """

    name: str
    command: str
    allocation: str
    budget: str
    groups: tuple[CampaignGroup, ...]
    unjudged: tuple[Result, ...]
    spent: Spending
    wall_s: float
    categories: tuple[CategoryRow, ...] = ()

    @property
    def results(self) -> tuple[Result, ...]:
        """Results of all problems."""
        return (*(result for group in self.groups for result in group.results), *self.unjudged)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "name": self.name,
            "command": self.command,
            "allocation": self.allocation,
            "budget": self.budget,
            "groups": [_group_json(group) for group in self.groups],
            "categories": [asdict(row) for row in self.categories],
            "unjudged": [_result_json(result) for result in self.unjudged],
            "spent": asdict(self.spent),
            "wall_s": self.wall_s,
        }


def result_of(
    name: str,
    precision: Precision,
    device: str,
    *,
    state: State,
    reason: str,
    folder: str = "",
    summary: Summary | None = None,
    category: str = "",
) -> Result:
    """Return the result of one problem, from the summary of its run if there is one."""
    if summary is None:
        return Result(name, precision, device, state, reason, category=category)
    head, models, totals = summary.headline, summary.costs.total, summary.totals
    return Result(
        name=name,
        precision=precision,
        device=device,
        state=state,
        reason=reason,
        folder=folder,
        steps=len(summary.rows),
        correct_steps=sum(row.passed is not None for row in summary.rows),
        verdict=head.verdict,
        claimed=head.claimed,
        confirmed=head.confirmed,
        labels=dict(summary.labels),
        category=category,
        spent=Spending(
            usd=models.cost_usd,
            unpriced=models.unpriced,
            calls=models.calls,
            tokens=models.tokens,
            device_s=totals.device_s,
            work_s=totals.wall_s,
        ),
    )


def summarize_campaign(
    results: Sequence[Result],
    *,
    name: str,
    command: str,
    allocation: str,
    budget: str,
    wall_s: float,
) -> CampaignSummary:
    """Return the summary of a campaign with these results, in their order."""
    members: dict[tuple[Precision, bool], list[Result]] = {
        (precision, labelled): [] for precision in PRECISIONS for labelled in (False, True)
    }
    for result in results:
        if result.judged:
            members[result.precision, result.set_apart].append(result)
    return CampaignSummary(
        name=name,
        command=command,
        allocation=allocation,
        budget=budget,
        groups=tuple(_group(*key, some) for key, some in members.items() if some),
        unjudged=tuple(result for result in results if not result.judged),
        spent=summed(Spending, [result.spent for result in results]),
        wall_s=wall_s,
        categories=tuple(_category_rows(results)),
    )


def _category_rows(results: Sequence[Result]) -> list[CategoryRow]:
    """Return a row for each category in its order, and one for all; none without categories."""
    of_tasks = [result for result in results if result.category]
    names = dict.fromkeys(result.category for result in of_tasks)
    rows = [_category_row(name, [r for r in of_tasks if r.category == name]) for name in names]
    return rows + ([_category_row("", of_tasks)] if len(rows) > 1 else [])


def _category_row(name: str, results: Sequence[Result]) -> CategoryRow:
    judged = [result for result in results if result.judged]
    clear = [r for r in judged if not (r.set_apart or r.left_open or r.verdict == "unmeasured")]
    timings = [result.timing for result in clear if result.timing]
    return CategoryRow(
        category=name,
        problems=len(results),
        judged=len(judged),
        right=sum(result.claimed is not None for result in judged),
        faster=sum(result.verdict == "faster" for result in judged),
        left_open=sum(result.left_open for result in judged),
        like_for_like=averages([t.claim for t in timings], len(clear)) if clear else None,
        over_eager=averages([t.speedup_eager for t in timings], len(clear)) if clear else None,
        labelled=sum(result.claimed is not None for result in judged if result.set_apart),
    )


def _group(precision: Precision, labelled: bool, results: Sequence[Result]) -> CampaignGroup:
    clear = [result for result in results if not result.left_open]
    timings = [result.timing for result in clear if result.timing]
    reached = Counter(result.claimed.precision for result in results if result.claimed)
    unmeasured = sum(result.verdict == "unmeasured" for result in results)
    left_open = len(results) - len(clear)
    count = len(clear) - unmeasured
    by_algebra = sum(result.by_algebra for result in clear)
    others = [r.timing for r in clear if r.timing and not r.by_algebra] if by_algebra else []
    left = count - by_algebra if by_algebra else 0
    return CampaignGroup(
        precision=precision,
        labelled=labelled,
        results=tuple(results),
        correct=len(timings) + unmeasured + left_open,
        unmeasured=unmeasured,
        left_open=left_open,
        faster=sum(result.verdict == "faster" for result in results),
        reached={name: reached[name] for name in PRECISIONS if reached[name]},
        like_for_like=averages([t.claim for t in timings], count) if count else None,
        over_eager=averages([t.speedup_eager for t in timings], count) if count else None,
        by_algebra=by_algebra,
        like_for_like_without=averages([t.claim for t in others], left) if left else None,
        over_eager_without=averages([t.speedup_eager for t in others], left) if left else None,
    )


def _group_json(group: CampaignGroup) -> dict[str, Any]:
    return {
        "precision": group.precision,
        "labelled": group.labelled,
        "problems": len(group.results),
        "correct": group.correct,
        "unmeasured": group.unmeasured,
        "left_open": group.left_open,
        "faster": group.faster,
        "reached": dict(group.reached),
        "like_for_like": _averages_json(group.like_for_like),
        "over_eager": _averages_json(group.over_eager),
        "by_algebra": group.by_algebra,
        "like_for_like_without_algebra": _averages_json(group.like_for_like_without),
        "over_eager_without_algebra": _averages_json(group.over_eager_without),
        "results": [_result_json(result) for result in group.results],
    }


def _averages_json(found: Averages | None) -> dict[str, Any] | None:
    return asdict(found) if found else None


def _result_json(result: Result) -> dict[str, Any]:
    claimed = evaluation_to_json(result.claimed) | {"detail": ""} if result.claimed else None
    return {
        "name": result.name,
        "category": result.category,
        "precision": result.precision,
        "device": result.device,
        "state": result.state,
        "reason": result.reason,
        "run": result.folder,
        "steps": result.steps,
        "correct_steps": result.correct_steps,
        "verdict": result.verdict,
        "confirmed": result.confirmed,
        "labels": dict(result.labels or {}),
        "winner": claimed,
        "spent": asdict(result.spent),
    }
