"""The ranking of a model's modules, and the result, as cells and as Rich renderables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.console import Group as Parts
from rich.table import Table
from rich.text import Text

from adaexplore.core.ranking import ModelRanking, RankedGroup
from adaexplore.core.replacement import CallOutcome, ModelOutcome, Ratio, Replacement
from adaexplore.report import text

HEADS = ("module", "of", "calls", "ops", "time", "own", "roofline leaves", "model at most", "bound")
NOTE = (
    "time: share of the model's time, inner modules included (own: without these), a mean over the "
    "calls. roofline leaves: the part of the model's time above the least time of the module's "
    "work. model at most: the speedup of the model with these modules at their roofline."
)
CALL_HEADS = ("call", "eager", "strongest", "before", "now", "as", "error", "before", "tokens")
REPLACED_HEADS = ("module", "of", "brought", "95 %", "result")
OUTCOME_NOTE = (
    "Times are end to end. before: the original in its strongest way. error: of the outputs on "
    "unseen inputs against a wider type, beside the original's own. tokens: steps of greedy "
    "decoding with the original's choice. brought: the model with these "
    "kernels over the model without them, the others in place."
)
_LEFT = ("module", "bound", "call", "strongest", "as", "result")
_MOST_LEFT_OUT = 12
_ADVICE = {
    "cuda graph": 'in a CUDA graph (`captured = result.capture("{name}")`)',
    "compile": "compiled (`torch.compile`)",
    "reduce-overhead": 'compiled (`torch.compile`, mode="reduce-overhead")',
    "max-autotune": 'compiled (`torch.compile`, mode="max-autotune")',
}


def cells(group: RankedGroup) -> tuple[str, ...]:
    """Return the cells of a group under `HEADS`."""
    ranked = group.is_chosen
    return (
        group.name,
        str(len(group.paths)),
        str(group.calls),
        str(group.operations),
        text.share(group.share),
        text.share(group.own_share),
        text.share(group.saves) if ranked else "-",
        text.speedup(group.most) if ranked else "-",
        group.bound_by or "-",
    )


def places(paths: Sequence[str]) -> str:
    """Return the places of modules, such as `layers.*.mlp`, with an asterisk for numbers."""
    patterns = dict.fromkeys(re.sub(r"(?<![^.])\d+(?![^.])", "*", path) for path in paths)
    return paths[0] if len(paths) == 1 else ", ".join(patterns)


def times(ranking: ModelRanking) -> str:
    """Return the times of the calls in one line."""
    return ", ".join(f"{call.name} {text.duration_us(call.time_us)}" for call in ranking.calls)


def left_out(ranking: ModelRanking) -> tuple[RankedGroup, ...]:
    """Return the largest groups that a search cannot work on."""
    return tuple(group for group in ranking.groups if not group.is_chosen)[:_MOST_LEFT_OUT]


def ranking_table(ranking: ModelRanking) -> RenderableType:
    """Return the chosen groups as a table, and a line for each that is left out."""
    table = Table(
        title=f"{ranking.model} on {ranking.device}, {ranking.precision}: {times(ranking)}",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for head in HEADS:
        table.add_column(head, justify="left" if head in _LEFT else "right", no_wrap=True)
    table.add_column("where", overflow="fold")
    for group in ranking.chosen:
        table.add_row(*cells(group), places(group.paths))
    parts: list[RenderableType] = [table]
    if ranking.chosen:
        parts.append(Text(f"all of them at their roofline: {text.speedup(ranking.most)}"))
    parts += [Text(_line(group), style="dim") for group in left_out(ranking)]
    return Parts(*parts, Text(NOTE, style="dim"))


def _line(group: RankedGroup) -> str:
    where = places(group.paths)
    return f"left out: {group.name} ({where}), {text.share(group.share)}: {group.reason}"


def headline(outcome: ModelOutcome) -> str:
    """Return the result in a sentence."""
    if not outcome.kept:
        return "no replacement makes the model clearly faster: it is as it was"
    count = sum(one.modules for one in outcome.kept)
    return (
        f"{text.speedup(outcome.speedup.median)} {interval(outcome.speedup)} over the strongest "
        f"way to run the original, with {count} modules replaced"
    )


def advice(outcome: ModelOutcome) -> list[str]:
    """Return a line for each call that the kernels make slower unless it is run in the best way."""
    if not outcome.kept:
        return []
    return [
        f"{call.name}: run it {_ADVICE[call.way].format(name=call.name)}; in eager mode it takes "
        f"{text.duration_us(call.after_us['eager'])} with the kernels and "
        f"{text.duration_us(call.before_us['eager'])} without"
        for call in outcome.calls
        if call.way != "eager" and call.after_us.get("eager", 0.0) > call.before_us["eager"]
    ]


def interval(ratio: Ratio | None) -> str:
    """Return a 95 % interval."""
    return text.interval((ratio.low, ratio.high)) if ratio else "-"


def call_cells(call: CallOutcome) -> tuple[str, ...]:
    """Return the cells of a call under `CALL_HEADS`."""
    return (
        call.name,
        text.duration_us(call.before_us["eager"]),
        call.strongest,
        text.duration_us(call.before_us[call.strongest]),
        text.duration_us(call.time_us),
        call.way,
        text.relative_error(call.error),
        text.relative_error(call.own_error),
        f"{call.agreeing} of {call.steps}" if call.steps else "-",
    )


def replaced_cells(one: Replacement) -> tuple[str, ...]:
    """Return the cells of a replacement under `REPLACED_HEADS`."""
    return (
        one.name,
        str(one.modules),
        text.speedup(one.brought.median) if one.brought else "-",
        interval(one.brought),
        one.reason or "kept",
    )


def outcome_table(outcome: ModelOutcome) -> RenderableType:
    """Return the calls before and after, and the replacements."""
    calls = _table(CALL_HEADS)
    for call in outcome.calls:
        calls.add_row(*call_cells(call))
    replaced = _table(REPLACED_HEADS)
    for one in outcome.replacements:
        replaced.add_row(*replaced_cells(one))
    note = Text(OUTCOME_NOTE, style="dim")
    lines = [Text(line, style="yellow") for line in advice(outcome)]
    return Parts(Text(headline(outcome), style="bold"), calls, replaced, *lines, note)


def model_text(ranking: ModelRanking, outcome: ModelOutcome | None) -> str:
    """Return the ranking and the result as plain text."""
    console = Console(width=120)
    with console.capture() as captured:
        console.print(ranking_table(ranking))
        if outcome:
            console.print(outcome_table(outcome))
    return captured.get()


def _table(heads: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for head in heads:
        is_text = head in _LEFT
        table.add_column(head, justify="left" if is_text else "right", no_wrap=head != "result")
    return table
