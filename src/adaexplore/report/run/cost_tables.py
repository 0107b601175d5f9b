"""The costs of a run's models as Rich renderables that fit 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from adaexplore.report import text
from adaexplore.report.run.costs import Costs

NO_STEP = "(no step)"
"""Name of the form for calls without a recorded step."""


def cost_tables(costs: Costs) -> RenderableType:
    """Return tables by model, by form of step and by section of the prompt, with the total."""
    if not costs.total.calls:
        return Text("no model calls")
    total = Text(f"total: {text.spent(costs.total)}")
    notes = [Text(note, style="dim") for note in _notes(costs)]
    return Group(_models(costs), _forms(costs), _sections(costs), total, *notes)


def _models(costs: Costs) -> Table:
    header = ("model", "calls", "in", "cached", "out", "cost", "waiting")
    rows = []
    for each in costs.models:
        spent = each.spent
        tokens = (spent.input_tokens, spent.cached_tokens, spent.output_tokens)
        used = (*map(text.tokens, tokens), text.cost_usd(spent), text.duration_s(spent.waited_s))
        rows.append((text.one_line(each.model), str(spent.calls), *used))
    return _table(header, rows)


def _forms(costs: Costs) -> Table:
    rows = []
    for each in costs.forms:
        name = text.one_line(each.form) or NO_STEP
        tokens = (text.tokens(each.spent.tokens), text.tokens(each.tokens_per_step))
        rows.append((name, str(each.steps), str(each.passed), *tokens, text.speedup(each.gain)))
    return _table(("form of step", "steps", "passed", "tokens", "per step", "gain"), rows)


def _sections(costs: Costs) -> Table:
    rows = []
    for each in costs.sections:
        tokens = text.tokens(each.tokens_per_step)
        rows.append((each.section, str(each.steps), tokens, text.share(each.share)))
    return _table(("section of the prompt", "steps", "tokens per step", "share"), rows)


def _notes(costs: Costs) -> list[str]:
    """Return notes for the reader of the figures."""
    notes = ["gain: factor by which these steps raised the best speedup"]
    if costs.sections:
        notes.append("tokens of sections are estimated from their length")
    if costs.total.estimated:
        notes.append(f"calls without a count: {costs.total.estimated}; their tokens are estimated")
    return notes


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table without rules, followed by an empty line."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(header[0], overflow="fold")
    for name in header[1:]:
        table.add_column(name, justify="right", no_wrap=name != "cost")
    for row in rows:
        table.add_row(*map(Text, row))
    table.add_row()
    return table
