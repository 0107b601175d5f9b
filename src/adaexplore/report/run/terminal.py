"""The summary of a run as Rich renderables."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from adaexplore.core.verdict.evaluation import Estimate, Passed, Timing
from adaexplore.core.verdict.uses import DEFECTS
from adaexplore.report import text
from adaexplore.report.run.headline import Headline
from adaexplore.report.run.summary import Row, Summary

VERDICT_STYLES = {
    "faster": "bold green",
    "no_gain": "bold yellow",
    "too_noisy": "bold yellow",
    "unproven": "bold yellow",
    "not_confirmed": "bold red",
    "unmeasured": "bold yellow",
    "no_correct": "bold red",
    "reported": "bold yellow",
    "empty": "bold",
}
COLUMNS = (
    ("id", "right"),
    ("parent", "right"),
    ("step", "left"),
    ("origin", "left"),
    ("status", "left"),
    ("time", "right"),
    ("speedup", "right"),
    ("95 %", "right"),
    ("eager", "right"),
)
ORIGIN_LIMIT = 10
"""Maximum characters of an origin in the table."""


def headline(summary: Summary) -> RenderableType:
    """Return the claim in one line, then its measurement, its caveats and the run's costs."""
    head = summary.headline
    lines: list[RenderableType] = [
        Text(text.one_line(head.sentence), style=VERDICT_STYLES[head.verdict])
    ]
    if head.claimed is not None and head.timing is not None:
        lines.append(_measurement(head, head.claimed, head.timing))
        lines += [
            Text(f"workload {text.one_line(each.name)}: {text.workload(each.timing)}")
            for each in head.claimed.workloads
        ]
        lines += [
            Text(text.one_line(line), style="bold red" if outcome in DEFECTS else "")
            for outcome, line in text.describe_uses(head.claimed.uses)
        ]
    if head.caveat:
        lines.append(Text(head.caveat, style="dim"))
    lines += [Text(f"{name}: {why}", style="yellow") for name, why in summary.labels.items()]
    lines.append(_totals(summary))
    if summary.published_sentence:
        lines.append(Text(summary.published_sentence))
    if summary.diversity_sentence:
        lines.append(Text(f"diversity: {summary.diversity_sentence}", style="dim"))
    if summary.costs.total.calls:
        lines.append(Text(f"models: {text.spent(summary.costs.total)}", style="dim"))
    return Group(*lines)


def tree_table(summary: Summary) -> RenderableType:
    """Return two lines per step: its numbers, and its note or reason cut to the terminal's width.

    The numbers fit 80 columns. The best step has a star.
    """
    header = tuple(Text(name, style="bold") for name, _ in COLUMNS)
    table = [header, *(_cells(row) for row in summary.rows)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*table, strict=True)]
    lines = [_line(header, widths)]
    for row, cells in zip(summary.rows, table[1:], strict=True):
        line = _line(cells, widths)
        if row.best:
            line.stylize("bold green")
        lines.append(line)
        note = text.one_line(_contradiction(row) + (row.reason or _note(row)))
        if note:
            indented = " " * (widths[0] + 1) + note
            lines.append(Text(indented, style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(*lines)


def _line(cells: tuple[Text, ...], widths: list[int]) -> Text:
    """Return the cells side by side, each padded to its column."""
    padded = [cell.copy() for cell in cells]
    for cell, width, (_, align) in zip(padded, widths, COLUMNS, strict=True):
        missing = width - cell.cell_len
        if align == "right":
            cell.pad_left(missing)
        else:
            cell.pad_right(missing)
    line = Text(" ", no_wrap=True, overflow="ellipsis").join(padded)
    line.rstrip()
    return line


def _cells(row: Row) -> tuple[Text, ...]:
    node = row.node
    timing = row.timing
    return (
        Text(f"★{node.id}" if row.best else str(node.id)),
        Text(str(node.parent_id)),
        Text(node.step_kind),
        Text(text.one_line(node.proposal.origin, ORIGIN_LIMIT)),
        Text(node.evaluation.status, style="" if row.passed else "red"),
        Text(text.duration_us(timing.time_us) if timing else ""),
        Text(text.speedup(timing.speedup) if timing else ""),
        Text(text.interval(timing.speedup_ci) if timing else ""),
        Text(text.speedup(timing.speedup_eager) if timing else ""),
    )


def _note(row: Row) -> str:
    """Return the proposer's note, after the facts needed to read the result."""
    passed = row.passed
    marks = [*passed.labels] if passed else []
    if passed and isinstance(passed.timing, Estimate):
        marks.insert(0, text.estimate(passed.timing))
    note = row.node.proposal.note
    return f"[{', '.join(marks)}] {note}" if marks else note


def _contradiction(row: Row) -> str:
    """Return what the published judge says of a step where the two judges differ."""
    evaluation = row.node.evaluation
    published = evaluation.published
    if published is None or evaluation.status == "reported":
        return ""
    if bool(published.why) != bool(row.passed):
        return ""
    return f"[published judge: {published.why or 'correct'}] "


def _measurement(head: Headline, claimed: Passed, timing: Timing) -> Text:
    baselines = ", ".join(
        f"{text.baseline_name(name)} {text.duration_us(time)}"
        for name, time in timing.baselines_us.items()
    )
    return Text(
        f"node {head.node_id} ({text.one_line(head.origin)}), "
        f"{'confirmed' if head.confirmed else 'not confirmed'}: "
        f"{text.duration_us(timing.time_us)} against {baselines}; "
        f"{text.quoted_speedups(timing)}; "
        f"{claimed.precision}, error {text.relative_error(claimed.error)}"
    )


def _totals(summary: Summary) -> Text:
    totals = summary.totals
    counts = ", ".join(f"{count} {status}" for status, count in summary.status_counts.items())
    return Text(
        f"{summary.progress}{f' ({counts})' if counts else ''}; "
        f"proposing {text.duration_s(totals.propose_s)}, "
        f"evaluating {text.cost_s(totals.evaluating)}, "
        f"device held {text.duration_s(totals.device_s)}",
        style="dim",
    )
