"""A campaign's results as Rich renderables."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from adaexplore.core.text.feedback import LABELS
from adaexplore.core.verdict.evaluation import Roofline, Timing
from adaexplore.core.verdict.labels import ALGEBRA, winner_set_apart
from adaexplore.report import text
from adaexplore.report.averages import FAST_P, Averages
from adaexplore.report.campaign.summary import CampaignGroup, CampaignSummary, CategoryRow, Result

CATEGORY_HEADS = (
    *("category", "problems", "judged", "right", "faster", "left open"),
    *("mean", "over eager"),
    *(f"fast_{p:g}" for p in FAST_P),
    "labelled",
)
CATEGORY_NOTE = (
    "Means are geometric, over right winners of problems without a label, like for like over the "
    "strongest baseline, without those whose measurement leaves open if they are faster; fast_p is "
    "the share of all such judged problems. Labelled: right winners of problems whose label says "
    "that a speedup means little."
)
_SHORT_NAME = 17  # characters that fit a terminal of 80 columns


def campaign_tables(summary: CampaignSummary) -> RenderableType:
    """Return the problems by precision class with averages, labelled ones apart, and costs."""
    parts: list[RenderableType] = [*_categories(summary)]
    for group in summary.groups:
        parts += [_problems(group), *_means(group), *_labels(group.results), Text()]
    if summary.unjudged:
        parts.append(Text("not judged", style="bold"))
        parts += [Text(line) for line in unjudged_lines(summary)]
    parts.append(Text(f"spent: {spending(summary)}", style="dim"))
    return Parts(*parts)


def unjudged_lines(summary: CampaignSummary) -> list[str]:
    """Return a line for each problem that was not judged; one for tasks left out by one reason."""
    lines = []
    left_out: dict[str, list[str]] = {}
    for result in summary.unjudged:
        if result.state == "left_out":
            left_out.setdefault(result.reason, []).append(result.name)
        else:
            lines.append(f"{result.name}: {text.one_line(result.reason)}")
    return lines + [f"{', '.join(names)}: {reason}" for reason, names in left_out.items()]


def category_cells(row: CategoryRow) -> tuple[str, ...]:
    """Return the cells of a category under `CATEGORY_HEADS`."""
    fast = row.like_for_like.fast_p if row.like_for_like else {}
    return (
        row.category or "all",
        *map(str, (row.problems, row.judged, row.right, row.faster, row.left_open)),
        _speedup(row.like_for_like.geometric_mean if row.like_for_like else None),
        _speedup(row.over_eager.geometric_mean if row.over_eager else None),
        *(text.share(fast[p]) if p in fast else "-" for p in FAST_P),
        str(row.labelled),
    )


def _categories(summary: CampaignSummary) -> list[RenderableType]:
    if not summary.categories:
        return []
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for head in CATEGORY_HEADS:
        left = head == CATEGORY_HEADS[0]
        table.add_column(head, justify="left" if left else "right", no_wrap=True)
    for row in summary.categories:
        table.add_row(*category_cells(row))
    return [table, Text(CATEGORY_NOTE, style="dim"), Text()]


def title(group: CampaignGroup) -> str:
    """Return the title of a group with its numbers of correct and faster problems."""
    count = len(group.results)
    name = f"{group.precision}, labelled problems" if group.labelled else group.precision
    aside = ", averaged apart" if group.labelled else ""
    estimated = f", {group.unmeasured} not measured" if group.unmeasured else ""
    left_open = f", {group.left_open} left open" if group.left_open else ""
    faster = f", {group.faster} clearly faster" if group.unmeasured < count else ""
    return f"{name}: {group.correct} of {count} correct{estimated}{left_open}{faster}{aside}"


def spending(summary: CampaignSummary) -> str:
    """Return the costs such as `1 h 12 min, device held 2 min 05 s, 7 calls, 31 ktok, 0.21 USD`."""
    spent = summary.spent
    parts = [text.duration_s(summary.wall_s), f"device held {text.duration_s(spent.device_s)}"]
    if spent.calls:
        money = f"{spent.usd:.2f} USD" if spent.usd >= 1 else f"{spent.usd:.4f} USD"
        unpriced = f" and {spent.unpriced} calls of unknown price" if spent.unpriced else ""
        parts += [f"{spent.calls} calls", text.tokens(spent.tokens), money + unpriced]
    return ", ".join(parts)


def averages_rows(group: CampaignGroup) -> list[tuple[str, str, str]]:
    """Return rows (name, like for like, over eager) of the averages; none without averages."""
    rows = _pairs(group.like_for_like, group.over_eager)
    without = _pairs(group.like_for_like_without, group.over_eager_without)
    left_out = f"{group.by_algebra} by algebra left out"
    return rows + [(f"{name}, {left_out}", own, eager) for name, own, eager in without]


def _pairs(own: Averages | None, eager: Averages | None) -> list[tuple[str, str, str]]:
    if own is None or eager is None:
        return []
    pairs = zip(_named(own), _named(eager), strict=True)
    return [(name, ours, theirs) for (name, ours), (_, theirs) in pairs]


def _named(averages: Averages) -> list[tuple[str, str]]:
    return [
        ("median", _speedup(averages.median)),
        ("mean", _speedup(averages.mean)),
        ("mean, capped at 10×", _speedup(averages.mean_capped)),
        ("geometric mean", _speedup(averages.geometric_mean)),
        *((f"fast_{p:g}", text.share(part)) for p, part in averages.fast_p.items()),
        ("mean as published", _speedup(averages.published_mean)),
        ("geometric mean as published", _speedup(averages.published_geometric_mean)),
    ]


def reached(group: CampaignGroup) -> str:
    """Return the precision classes of the winners, such as `12 fp32, 2 tf32`."""
    return ", ".join(f"{count} {name}" for name, count in group.reached.items()) or "none"


def _problems(group: CampaignGroup) -> Table:
    table = Table(
        title=title(group),
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    short = all(len(result.name) <= _SHORT_NAME for result in group.results)
    table.add_column("times in µs", overflow="fold", no_wrap=short)
    for name in ("steps", "eager", "against", "best", "like for like", "over eager"):
        table.add_column(name, justify="right", no_wrap=name != "against")
    table.add_column("roofline", justify="right", no_wrap=True)
    for result in group.results:
        table.add_row(result.name, str(result.steps), *_cells(result))
        for each in result.claimed.workloads if result.claimed else ():
            if isinstance(each.timing, Timing):
                table.add_row(f"  {each.name}", "", *_figures(each.timing, each.roofline))
    if any(_is_unconfirmed(result) for result in group.results):
        table.caption, table.caption_justify = "* not measured again in a fresh process", "left"
    return table


def _is_unconfirmed(result: Result) -> bool:
    return result.claimed is not None and not result.confirmed


def _cells(result: Result) -> Iterable[str]:
    claimed, timing = result.claimed, result.timing
    if claimed is None or timing is None:
        return ("", "", "", result.verdict.replace("_", " "))
    return _figures(timing, claimed.roofline, "*" if _is_unconfirmed(result) else "")


def _figures(timing: Timing, roofline: Roofline | None, star: str = "") -> Iterable[str]:
    """Return the cells of a measurement, for a problem or for one of its workloads."""
    baselines = timing.baselines_us
    return (
        _microseconds(baselines["eager"]) if "eager" in baselines else "-",
        f"{_microseconds(baselines[timing.strongest])} {timing.strongest}" if baselines else "-",
        _microseconds(timing.time_us),
        f"{text.claim(timing)}{star} {text.interval(timing.speedup_ci)}",
        text.speedup(timing.speedup_eager),
        text.share(roofline.share) if roofline else "-",
    )


def _microseconds(time_us: float) -> str:
    return f"{time_us:.0f}" if time_us >= 10 else f"{time_us:.1f}"


def _means(group: CampaignGroup) -> list[Table]:
    if not averages_rows(group):
        return []
    table = Table(box=None, style="dim")
    table.add_column("", no_wrap=True)
    for name in ("like for like", "over eager"):
        table.add_column(name, justify="right")
    for row in averages_rows(group):
        table.add_row(*row)
    table.caption, table.caption_justify = f"classes reached: {reached(group)}", "left"
    return [table]


def _labels(results: Iterable[Result]) -> list[Text]:
    lines = []
    for result in results:
        labels = dict(result.labels or {})
        if result.by_algebra:
            labels[ALGEBRA] = "the winner needs less than the reference's work"
        for label in result.claimed.labels if result.claimed else ():
            if winner_set_apart([label]):
                labels[label] = f"of the winner: {LABELS[label]}"
        lines += [f"{result.name}: {name}: {why}" for name, why in labels.items()]
        uses = result.claimed.uses if result.claimed else ()
        lines += [f"{result.name}: the winner: {line}" for line in text.describe_defects(uses)]
    return [Text(line, style="yellow") for line in lines]


def _speedup(ratio: float | None) -> str:
    return "-" if ratio is None else text.speedup(ratio)
