"""A comparison as Rich renderables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from adaexplore.core.text.units import plural
from adaexplore.report import text
from adaexplore.report.compare.comparison import (
    MIN_PROBLEMS,
    ArmEffort,
    Checkpoint,
    Comparison,
    FoundSpeedup,
    Pair,
    RunGroup,
)
from adaexplore.report.compare.reported import reported_summary, reported_table
from adaexplore.report.compare.traces import Axis, spelled


def comparison_tables(comparison: Comparison) -> RenderableType:
    """Return for every group the arms, the decision, the problems and the efforts."""
    parts: list[RenderableType] = []
    for group in comparison.groups:
        parts.append(Text(title(group), style="bold"))
        if checkpoints_of(group):
            parts += [
                _arms(group, comparison.axis),
                *map(Text, verdicts(group, comparison.axis)),
                Text(),
            ]
        if group.rows:
            parts += [_problems(group, comparison.axis), Text()]
        parts += [_efforts(group, comparison.axis)]
        parts += [Text(note, style="yellow") for note in group.notes]
        parts.append(Text())
    for problem, labels in comparison.labels.items():
        parts += [Text(f"{problem}: {name}: {why}", style="yellow") for name, why in labels.items()]
    if comparison.reported:
        parts += [reported_table(comparison.reported), Text(reported_summary(comparison.reported))]
    parts += [Text(note, style="yellow") for note in comparison.notes]
    return Parts(*parts)


def title(group: RunGroup) -> str:
    """Return the title of a group: the properties that its runs share."""
    count = len({row.problem for row in group.rows if row.paired})
    shared = " that all arms have" if len(group.efforts) > 1 else ""
    problems = plural(count, "problem") + shared
    if group.estimated:
        problems = "times are estimated: there are no speedups to compare"
    labelled = ", labelled problems, averaged apart" if group.labelled else ""
    return f"{group.precision} on {group.environment}{labelled}: {problems}"


def verdict(pair: Pair, checkpoint: Checkpoint, axis: Axis) -> str:
    """Return a pair as a sentence: ratio, interval, wins and decision."""
    where = "as claimed" if checkpoint.at is None else f"at {spelled(axis, checkpoint.at)}"
    sure = ""
    if pair.interval:
        sure = f" (95 % {text.interval(pair.interval)}, {p_value(pair)})"
    ratio = text.speedup(pair.ratio)
    score = f"won {pair.wins}, tied {pair.ties}, lost {pair.losses}"
    too_few = "problems" if checkpoint.problems > 1 else "problems, or seeds of one"
    decided = {
        "faster": f"{pair.arm} is faster",
        "slower": f"{pair.over} is faster",
        "undecided": "undecided, the interval includes 1",
        "too few": f"too few to decide, at least {MIN_PROBLEMS} {too_few} are needed",
    }[pair.decision]
    return f"{pair.arm} over {pair.over} {where}: {ratio}{sure}, {score}: {decided}."


def p_value(pair: Pair) -> str:
    """Return the p-value of a pair's test, such as `p = 0.031`; `-` without one."""
    if pair.p_value is None:
        return "-"
    return "p < 0.001" if pair.p_value < 0.001 else f"p = {pair.p_value:.3f}"


def verdicts(group: RunGroup, axis: Axis) -> list[str]:
    """Return a sentence for every pair of a group at its last checkpoint."""
    last = group.checkpoints[-1:]
    return [verdict(pair, checkpoint, axis) for checkpoint in last for pair in checkpoint.pairs]


def effort_rows(group: RunGroup) -> list[tuple[str, ...]]:
    """Return the efforts as cells, under `EFFORT_HEADS`."""
    return [_effort_cells(effort) for effort in group.efforts]


_PAID: tuple[Axis, ...] = ("tokens", "usd")

EFFORT_HEADS = (
    "arm",
    "runs",
    "first try correct",
    "correct steps",
    "structures",
    "mean distance",
    "evaluations",
    "tokens",
    "cost",
    "in progress",
    "device held",
)


def columns(group: RunGroup, axis: Axis) -> list[str]:
    """Return the column heads of the problems' results."""
    return [*(spelled(axis, place) for place in group.places), "claimed"]


def heads(group: RunGroup, axis: Axis) -> list[str]:
    """Return the column heads of the checkpoints and the claims."""
    return [_head(checkpoint, axis) for checkpoint in checkpoints_of(group)]


def _head(checkpoint: Checkpoint, axis: Axis) -> str:
    if checkpoint.left_out:
        return f"claimed, {checkpoint.left_out} by algebra left out"
    return "claimed" if checkpoint.at is None else spelled(axis, checkpoint.at)


def found(one: FoundSpeedup) -> str:
    """Return the result of runs as a cell."""
    if one.speedup is None:
        return "-"
    if not one.correct:
        return "none correct"
    some = f" ({one.correct} of {one.runs} correct)" if one.correct < one.runs else ""
    return text.speedup(one.speedup) + some


def checkpoints_of(group: RunGroup) -> list[Checkpoint]:
    """Return the checkpoints at equal amounts, and the claims with and without algebra."""
    return [*group.checkpoints, *filter(None, (group.claims, group.claims_without))]


def _arms(group: RunGroup, axis: Axis) -> Table:
    table = _table("arm", ["", *heads(group, axis)])
    everywhere = checkpoints_of(group)
    for i, arm in enumerate(each.arm for each in everywhere[0].standings):
        standings = [checkpoint.standings[i] for checkpoint in everywhere]
        table.add_row(arm, "mean", *(_figure(each.speedup, each.interval) for each in standings))
        if i:
            pairs = [checkpoint.pairs[i - 1] for checkpoint in everywhere]
            table.add_row("", "over first", *(_figure(each.ratio, each.interval) for each in pairs))
    return table


def _figure(value: float, interval: tuple[float, float] | None) -> str:
    below = f"\n[dim]{text.interval(interval)}[/dim]" if interval else ""
    return text.speedup(value) + below


def _problems(group: RunGroup, axis: Axis) -> Table:
    table = _table("problem", ["arm", *columns(group, axis)], left=1)
    before = ""
    for row in group.rows:
        cells = [*map(found, row.found), found(row.claimed)]
        table.add_row(row.problem if row.problem != before else "", row.arm, *cells)
        before = row.problem
    return table


def _efforts(group: RunGroup, axis: Axis) -> Table:
    arms, *rest = zip(*effort_rows(group), strict=True)
    table = _table(f"per run, up to {spelled(axis, group.places[-1])}", arms)
    for head, cells in zip(EFFORT_HEADS[1:], rest, strict=True):
        table.add_row(head, *cells)
    return table


def _effort_cells(effort: ArmEffort) -> tuple[str, ...]:
    used = effort.used
    tokens, usd = (
        "unknown" if name in effort.unknown else spelled(name, used[name]) if used[name] else "-"
        for name in _PAID
    )
    return (
        effort.arm,
        str(effort.runs),
        f"{effort.first_tries} of {effort.runs}",
        text.share(effort.correct),
        f"{effort.structures:.1f}",
        "-" if effort.distance is None else f"{effort.distance:.2f}",
        f"{used['evaluations']:.1f}",
        tokens,
        usd,
        text.duration_s(used["seconds"]),
        text.duration_s(effort.device_s),
    )


def _table(first: str, rest: Sequence[str], left: int = 0) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, overflow="fold")
    for i, name in enumerate(rest):
        table.add_column(name, justify="left" if i < left else "right")
    return table
