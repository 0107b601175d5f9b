"""The summary of a judged benchmark, computed once; renderers only draw it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from adaexplore.core.bench import BenchEntry, BenchVerdict, LeftOutAnswer
from adaexplore.core.verdict.evaluation import Passed, Timing
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.core.verdict.labels import ALGEBRA, set_apart
from adaexplore.report.averages import Averages, averages


@dataclass(frozen=True, slots=True)
class BenchMeans:
    """Averages of some judged answers: of the speedups over the strongest baseline, and over eager.

    `without_algebra` leaves out the answers that need less than the reference's work, of which
    there are `by_algebra`; None where there are none. A figure is None without a judged answer.
    """

    judged: int
    right: int
    by_algebra: int
    like_for_like: Averages | None
    over_eager: Averages | None
    without_algebra: Averages | None


@dataclass(frozen=True, slots=True)
class BenchGroup:
    """The answers of a collection in one category, or in all (`category` is empty).

    `answers` were to be judged; `unjudged` of them cannot be, and `unfinished` have no verdict yet,
    or one that is trouble of the machinery. `faster` counts the right answers whose interval lies
    above 1. `statuses` counts the verdicts. `ordinary` are the means over problems without a label,
    `labelled` those over the others.
    """

    collection: str
    category: str
    answers: int
    judged: int
    unjudged: int
    unfinished: int
    right: int
    faster: int
    statuses: Mapping[str, int]
    ordinary: BenchMeans
    labelled: BenchMeans


@dataclass(frozen=True, slots=True)
class BesideTheirs:
    """Answers with a verdict of ours and of their collection, counted by who calls them right.

    `called` counts those that came to the end of their benchmark's own test, None without such a
    test. `over_golden` is the mean of the benchmark's own time, on its own machine, over ours, over
    the answers that both call right; None without such times.
    """

    collection: str
    both_right: int
    only_theirs: int
    only_ours: int
    neither: int
    called: int | None = None
    over_golden: float | None = None

    @property
    def answers(self) -> int:
        """The number of answers."""
        return self.both_right + self.only_theirs + self.only_ours + self.neither

    @property
    def right_by_theirs(self) -> int:
        """The number of those that they call right."""
        return self.both_right + self.only_theirs


@dataclass(frozen=True, slots=True)
class BenchSummary:
    """The summary of a judged benchmark: `groups` by collection and category, and every verdict.

    `beside` compares the verdicts of collections that record their own; `left_out` are the answers
    that were not to be judged.
    """

    benchmark: str
    command: str
    device: str
    precision: str
    groups: tuple[BenchGroup, ...]
    totals: tuple[BenchGroup, ...]
    verdicts: tuple[BenchVerdict, ...]
    beside: tuple[BesideTheirs, ...] = ()
    left_out: tuple[LeftOutAnswer, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON; it holds no text of answers or problems."""
        return {
            "benchmark": self.benchmark,
            "command": self.command,
            "device": self.device,
            "precision": self.precision,
            "groups": [asdict(group) for group in (*self.groups, *self.totals)],
            "verdicts": [_verdict_json(verdict) for verdict in self.verdicts],
            "beside": [asdict(one) for one in self.beside],
            "left_out": [asdict(one) for one in self.left_out],
        }


def timing_of(verdict: BenchVerdict) -> Timing | None:
    """Return the times of a right answer, None for any other."""
    return verdict.evaluation.measured if verdict.evaluation else None


def summarize_bench(
    entries: Sequence[BenchEntry],
    verdicts: Sequence[BenchVerdict],
    *,
    benchmark: str,
    command: str,
    precision: str,
    left_out: Sequence[LeftOutAnswer] = (),
) -> BenchSummary:
    """Return the summary of the verdicts on entries, by collection and category."""
    by_id = {verdict.entry.id: verdict for verdict in verdicts}
    collections = list(dict.fromkeys(entry.collection for entry in entries))
    groups, totals = [], []
    for name in collections:
        own = [entry for entry in entries if entry.collection == name]
        categories = sorted({entry.category for entry in own})
        groups += [
            _group(name, one, [entry for entry in own if entry.category == one], by_id)
            for one in categories
        ]
        totals += [_group(name, "", own, by_id)]
    devices = sorted({verdict.device for verdict in verdicts if verdict.device})
    return BenchSummary(
        benchmark=benchmark,
        command=command,
        device=", ".join(devices),
        precision=precision,
        groups=tuple(groups),
        totals=tuple(totals),
        verdicts=tuple(verdicts),
        beside=tuple(found for name in collections if (found := _beside(name, verdicts))),
        left_out=tuple(left_out),
    )


def _beside(collection: str, verdicts: Sequence[BenchVerdict]) -> BesideTheirs | None:
    """Return the comparison with a collection's own verdicts; None where it has none."""
    both = [
        (one, one.entry.theirs)
        for one in verdicts
        if one.entry.collection == collection and one.evaluation and one.is_final
        if one.entry.theirs and one.entry.theirs.right is not None
    ]
    if not both:
        return None
    pairs = Counter((said.right, isinstance(one.evaluation, Passed)) for one, said in both)
    tested = [said.called for _, said in both if said.called is not None]
    golden = [
        one.entry.golden_us / timing.time_us
        for one, said in both
        if said.right and one.entry.golden_us and (timing := timing_of(one))
    ]
    return BesideTheirs(
        collection,
        both_right=pairs[True, True],
        only_theirs=pairs[True, False],
        only_ours=pairs[False, True],
        neither=pairs[False, False],
        called=sum(tested) if tested else None,
        over_golden=fmean(golden) if golden else None,
    )


def _group(
    collection: str,
    category: str,
    entries: Sequence[BenchEntry],
    by_id: Mapping[tuple[str, str, str], BenchVerdict],
) -> BenchGroup:
    found = [by_id[entry.id] for entry in entries if entry.id in by_id]
    judged = [one for one in found if one.evaluation and one.is_final]
    unjudged = sum(one.evaluation is None for one in found)
    timings = [timing for one in judged if (timing := timing_of(one))]
    labelled = [one for one in judged if set_apart(one.labels)]
    return BenchGroup(
        collection=collection,
        category=category,
        answers=len(entries),
        judged=len(judged),
        unjudged=unjudged,
        unfinished=len(entries) - len(judged) - unjudged,
        right=sum(isinstance(one.evaluation, Passed) for one in judged),
        faster=sum(timing.speedup_ci[0] > 1 for timing in timings),
        statuses=dict(Counter(one.evaluation.status for one in judged if one.evaluation)),
        ordinary=_means([one for one in judged if not set_apart(one.labels)]),
        labelled=_means(labelled),
    )


def _means(judged: Sequence[BenchVerdict]) -> BenchMeans:
    right = [one.evaluation for one in judged if isinstance(one.evaluation, Passed)]
    timings = [passed.measured for passed in right if passed.measured]
    algebra = [passed for passed in right if ALGEBRA in passed.labels]
    others = [p.measured for p in right if p.measured and ALGEBRA not in p.labels]
    left = len(judged) - len(algebra)
    return BenchMeans(
        judged=len(judged),
        right=len(right),
        by_algebra=len(algebra),
        like_for_like=averages([t.claim for t in timings], len(judged)) if judged else None,
        over_eager=averages([t.speedup_eager for t in timings], len(judged)) if judged else None,
        without_algebra=averages([t.claim for t in others], left) if algebra and left else None,
    )


def _verdict_json(verdict: BenchVerdict) -> dict[str, Any]:
    found = evaluation_to_json(verdict.evaluation) if verdict.evaluation else None
    leave = ("detail", "fault", "mismatch", "profile", "descriptor", "workloads")
    kept = {key: value for key, value in found.items() if key not in leave} if found else None
    return {**verdict.to_json(), "evaluation": kept}
