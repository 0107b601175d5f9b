"""The costs of a run's models: by model, by form of step, by section of the prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from adaexplore.core.ask import MANUAL, Exchange
from adaexplore.core.node import Node
from adaexplore.core.verdict.evaluation import Passed
from adaexplore.report.calls import CallTotals
from adaexplore.report.run.exchanges import Exchanges


@dataclass(frozen=True, slots=True)
class ModelCost:
    """Costs of one model; the model `MANUAL` stands for answers by hand."""

    model: str
    spent: CallTotals


@dataclass(frozen=True, slots=True)
class FormCost:
    """Costs and gain of the steps of one form.

    `form` is the proposer's name for it, or the proposer's own name if it has one form only; it is
    empty for calls without a recorded step. `gain` is the factor by which these steps raised the
    best speedup. `tokens_per_step` counts prompts and replies, 0 without a step.
    """

    form: str
    steps: int
    passed: int
    gain: float
    tokens_per_step: float
    spent: CallTotals


@dataclass(frozen=True, slots=True)
class SectionCost:
    """Estimated cost of a section of the prompts.

    `steps` counts the steps with the section, `tokens_per_step` is the mean over these, and `share`
    is the section's share of all sections' tokens.
    """

    section: str
    steps: int
    tokens_per_step: float
    share: float


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of a run's models; every list begins with the largest."""

    total: CallTotals = field(default_factory=CallTotals)
    models: tuple[ModelCost, ...] = ()
    forms: tuple[FormCost, ...] = ()
    sections: tuple[SectionCost, ...] = ()


def summarize_costs(
    nodes: Sequence[Node],
    calls: Sequence[Exchange],
    exchanges: Mapping[int, Exchanges],
    gains: Sequence[float],
    tokens_of: Callable[[str], int],
) -> Costs:
    """Return the costs of a run.

    `calls` are all its calls, `exchanges` those for recorded steps. `gains` has, for each node in
    order, ln of the factor by which it raised the best speedup. `tokens_of` estimates the tokens of
    a text.
    """

    def spent(some: Iterable[Exchange]) -> CallTotals:
        return _spent(some, tokens_of)

    models = {call.reply.model for call in calls}
    by_model = [
        ModelCost(model, spent(call for call in calls if call.reply.model == model))
        for model in sorted(models)
    ]
    return Costs(
        total=spent(calls),
        models=tuple(sorted(by_model, key=lambda cost: -cost.spent.tokens)),
        forms=_forms(nodes, calls, exchanges, gains, spent),
        sections=_sections(nodes),
    )


def _spent(calls: Iterable[Exchange], tokens_of: Callable[[str], int]) -> CallTotals:
    replies = []
    input_tokens = output_tokens = estimated = 0
    for call in calls:
        reply, usage = call.reply, call.reply.usage
        replies.append(reply)
        # A prompt that was too long for the model was refused unread.
        if usage.input_tokens or usage.output_tokens or reply.finish == "too_long":
            input_tokens += usage.input_tokens
            output_tokens += usage.output_tokens
        else:
            input_tokens += sum(tokens_of(message.text) for message in call.prompt.messages)
            output_tokens += tokens_of(reply.text)
            estimated += 1
    return CallTotals(
        calls=len(replies),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=sum(reply.usage.cached_tokens for reply in replies),
        estimated=estimated,
        cost_usd=sum(reply.usage.cost_usd or 0.0 for reply in replies),
        unpriced=sum(r.usage.cost_usd is None for r in replies if r.model != MANUAL),
        by_hand=sum(reply.model == MANUAL for reply in replies),
        waited_s=sum(reply.latency_s for reply in replies),
    )


def _forms(
    nodes: Sequence[Node],
    calls: Sequence[Exchange],
    exchanges: Mapping[int, Exchanges],
    gains: Sequence[float],
    spent: Callable[[Iterable[Exchange]], CallTotals],
) -> tuple[FormCost, ...]:
    gain_of = {node.id: gain for node, gain in zip(nodes, gains, strict=True)}
    members: dict[str, list[Node]] = {}
    for node in nodes:
        members.setdefault(_form(node), []).append(node)
    found = []
    for form, group in members.items():
        used = spent(call for node in group for call in exchanges.get(node.id, ()))
        found.append(
            FormCost(
                form=form,
                steps=len(group),
                passed=sum(isinstance(node.evaluation, Passed) for node in group),
                gain=math.exp(sum(gain_of[node.id] for node in group)),
                tokens_per_step=used.tokens / len(group),
                spent=used,
            )
        )
    made = {each.ask_id for some in exchanges.values() for each in some}
    rest = [call for call in calls if call.ask_id not in made]
    if rest:
        found.append(FormCost("", 0, 0, 1.0, 0.0, spent(rest)))
    return tuple(sorted(found, key=lambda cost: -cost.spent.tokens))


def _form(node: Node) -> str:
    form = node.proposal.settings.get("form")
    return form if isinstance(form, str) else node.proposal.origin


def _sections(nodes: Iterable[Node]) -> tuple[SectionCost, ...]:
    tokens: dict[str, list[int]] = {}
    for node in nodes:
        for section, count in node.proposal.settings.get("prompt_tokens", {}).items():
            tokens.setdefault(section, []).append(count)
    every = sum(map(sum, tokens.values()))
    found = [
        SectionCost(section, len(counts), sum(counts) / len(counts), sum(counts) / every)
        for section, counts in tokens.items()
        if any(counts)
    ]
    return tuple(sorted(found, key=lambda cost: -cost.share))
