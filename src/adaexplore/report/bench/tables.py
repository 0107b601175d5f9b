"""A judged benchmark as cells, and as Rich renderables."""

from __future__ import annotations

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from adaexplore.core.bench import BenchVerdict, TheirVerdict
from adaexplore.core.verdict.evaluation import Passed
from adaexplore.report import text
from adaexplore.report.averages import FAST_P, Averages
from adaexplore.report.bench.summary import BenchGroup, BenchSummary, BesideTheirs, timing_of

GROUP_HEADS = (
    *("collection", "category", "answers", "judged", "right", "faster"),
    *("mean", "without algebra", "over eager"),
    *(f"fast_{p:g}" for p in FAST_P),
    "labelled",
    "their mean",
)
ANSWER_HEADS = (
    *("collection", "problem", "verdict", "like for like", "over eager", "over compile"),
    *("strongest baseline", "class", "labels", "theirs", "cause"),
)
BESIDE_HEADS = (
    *("collection", "answers", "called", "right by theirs", "right in both"),
    *("in theirs alone", "in ours alone", "in neither", "over golden"),
)
_TEXT_COLUMNS = frozenset({"collection", "category", "problem", "verdict", "class", "labels"})
_TEXT_ALSO = frozenset({"strongest baseline", "theirs", "cause"})
NOTE = (
    "Means are geometric, over right answers to problems without a label, like for like over the "
    "strongest baseline of the same precision class; fast_p is the share of all judged answers to "
    "such problems that are right and more than p times as fast. Faster: the whole 95 % interval "
    "lies above 1. Labelled: the right ones of the answers to problems whose label says that a "
    "speedup means little, and their mean."
)


BESIDE_NOTE = (
    "Called and right by theirs: the shares of these answers that come to the end of their own "
    "test, and that they call right. Over golden: the mean, over the answers right in both, of the "
    "time that the benchmark measured on its machine for its own function over ours here."
)


def bench_tables(summary: BenchSummary) -> RenderableType:
    """Return the table by collection and category, and the answers without a verdict."""
    table = Table(*(), box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for head in GROUP_HEADS:
        table.add_column(head, justify="left" if is_text(head) else "right", no_wrap=True)
    for group in rows_of(summary):
        table.add_row(*group_cells(group))
    parts: list[RenderableType] = [table, Text(NOTE, style="dim"), *_beside_table(summary)]
    parts += [Text(line, style="yellow") for line in remarks(summary)]
    return Parts(*parts)


def _beside_table(summary: BenchSummary) -> list[RenderableType]:
    if not summary.beside:
        return []
    table = Table(title="beside their own verdicts", title_justify="left", box=None, pad_edge=False)
    for head in BESIDE_HEADS:
        table.add_column(head, justify="left" if is_text(head) else "right")
    for one in summary.beside:
        table.add_row(*beside_cells(one))
    return [table, Text(BESIDE_NOTE, style="dim")]


def beside_cells(one: BesideTheirs) -> tuple[str, ...]:
    """Return the cells of a comparison with their verdicts under `BESIDE_HEADS`."""
    counts = (one.both_right, one.only_theirs, one.only_ours, one.neither)
    return (
        one.collection,
        str(one.answers),
        "-" if one.called is None else text.share(one.called / one.answers),
        text.share(one.right_by_theirs / one.answers),
        *map(str, counts),
        "-" if one.over_golden is None else text.speedup(one.over_golden),
    )


def rows_of(summary: BenchSummary) -> list[BenchGroup]:
    """Return the groups of each collection, and its total where it has several."""
    rows = []
    for total in summary.totals:
        own = [group for group in summary.groups if group.collection == total.collection]
        rows += own + ([total] if len(own) > 1 else [])
    return rows


def is_text(head: str) -> bool:
    """Return whether a column holds words and not figures."""
    return head in _TEXT_COLUMNS | _TEXT_ALSO


def group_cells(group: BenchGroup) -> tuple[str, ...]:
    """Return the cells of a group under `GROUP_HEADS`."""
    ordinary, labelled = group.ordinary, group.labelled
    fast = ordinary.like_for_like.fast_p if ordinary.like_for_like else {}
    return (
        group.collection,
        group.category or "all",
        str(group.answers),
        str(group.judged),
        str(group.right),
        str(group.faster),
        _mean(ordinary.like_for_like),
        _mean(ordinary.without_algebra) if ordinary.by_algebra else _mean(ordinary.like_for_like),
        _mean(ordinary.over_eager),
        *(text.share(fast[p]) if p in fast else "-" for p in FAST_P),
        f"{labelled.right} of {labelled.judged}" if labelled.judged else "-",
        _mean(labelled.like_for_like),
    )


def answer_cells(verdict: BenchVerdict) -> tuple[str, ...]:
    """Return the cells of an answer under `ANSWER_HEADS`."""
    found, timing = verdict.evaluation, timing_of(verdict)
    passed = found if isinstance(found, Passed) else None
    compile_ = timing.speedup_compile if timing else None
    return (
        verdict.entry.collection,
        problem_name(verdict),
        found.status.replace("_", " ") if found else "not judged",
        f"{text.claim(timing)} ({text.interval(timing.speedup_ci)})" if timing else "",
        text.speedup(timing.speedup_eager) if timing else "",
        text.speedup(compile_) if compile_ else "",
        text.baseline_name(timing.strongest) if timing else "",
        passed.precision if passed else "",
        ", ".join([*verdict.labels, *(passed.labels if passed else ())]),
        _theirs(verdict.entry.theirs),
        "" if passed else text.one_line(verdict.unjudged or _reason(verdict), 160),
    )


def problem_name(verdict: BenchVerdict) -> str:
    """Return the key of the problem and its name, such as `2/37_Matmul_Swish`."""
    level = verdict.entry.key.rpartition("/")[0]
    stem = verdict.entry.problem.rpartition("/")[2].removesuffix(".py")
    return f"{level}/{stem}" if level else stem


def remarks(summary: BenchSummary) -> list[str]:
    """Return lines about the answers that have no verdict, and those that are left out."""
    lines = []
    for total in summary.totals:
        parts = []
        if total.unjudged:
            parts.append(f"{total.unjudged} cannot be judged")
        if total.unfinished:
            parts.append(f"{total.unfinished} not judged yet")
        if parts:
            lines.append(f"{total.collection}: {', '.join(parts)} of {total.answers}")
    return lines + _left_out(summary)


def _left_out(summary: BenchSummary) -> list[str]:
    """Return a line for each collection and reason, with the answers that are left out by it."""
    places: dict[tuple[str, str], list[str]] = {}
    for one in summary.left_out:
        places.setdefault((one.collection, one.reason), []).append(one.place)
    return [
        f"{collection}: left out, {len(some)}: {reason}: {', '.join(some)}"
        for (collection, reason), some in places.items()
    ]


def _theirs(theirs: TheirVerdict | None) -> str:
    """Return their verdict with the time and the speedup that they claim."""
    if theirs is None:
        return ""
    parts = [text.one_line(theirs.said, 60)]
    parts += [text.duration_us(theirs.time_us)] if theirs.time_us is not None else []
    parts += [text.speedup(theirs.speedup)] if theirs.speedup is not None else []
    return ", ".join(parts)


def _reason(verdict: BenchVerdict) -> str:
    found = verdict.evaluation
    return "" if found is None or isinstance(found, Passed) else found.reason


def _mean(averages: Averages | None) -> str:
    mean = averages.geometric_mean if averages else None
    return "-" if mean is None else text.speedup(mean)
