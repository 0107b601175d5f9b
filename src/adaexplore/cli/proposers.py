"""Who proposes in a run: from names to proposers, and to the clients that answer for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from adaexplore.llm.base import Client, Usage
from adaexplore.llm.budget import Budget, Budgeted, Limits, parse_budget
from adaexplore.llm.options import ClientOptions
from adaexplore.llm.providers import open_client
from adaexplore.llm.replay import Recording, Replay
from adaexplore.propose.base import Proposer
from adaexplore.propose.model.prompts import Prompts
from adaexplore.propose.model.proposer import ModelProposer
from adaexplore.search.ensemble import choose_proposer
from adaexplore.settings import Settings
from adaexplore.store import Store
from adaexplore.study import Study

COMPILER = "compiler"
PERSON = "ask"
"""The proposer whose prompts are answered by whoever runs `ask` and `tell`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run's proposals come from, as the store keeps it.

    `proposers` are asked, by what they bring: "compiler", "ask", or names of models. `budget` is as
    `parse_budget` reads it; `prompts` a folder with templates of the user's own; `record` and
    `replay` folders with models' replies; `base_url` is for `openai-compatible:` models.
    """

    proposers: tuple[str, ...]
    budget: str = ""
    prompts: str = ""
    record: str = ""
    replay: str = ""
    base_url: str = ""

    @property
    def models(self) -> list[str]:
        """The proposers that are models."""
        return [name for name in self.proposers if name not in (COMPILER, PERSON)]

    @property
    def limits(self) -> Limits:
        """The budget, parsed; `BadInputError` for one that says nothing."""
        return parse_budget(self.budget) if self.budget else Limits()

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"prompts_digest": self.templates().digest}

    @staticmethod
    def from_json(data: Mapping[str, Any], proposer: str) -> Plan:
        """The plan of a run; one that has none is its single `proposer`'s."""
        known = {f.name for f in fields(Plan)}
        values = {key: value for key, value in data.items() if key in known}
        return Plan(**({"proposers": (proposer,)} | values))

    def templates(self) -> Prompts:
        """The prompts in force."""
        return Prompts(Path(self.prompts) if self.prompts else None)


def check(plan: Plan) -> None:
    """Raises `BadInputError` for a plan that cannot be followed, before anything is started.

    A budget that says nothing, broken templates, a model without a name or a key.
    """
    _ = plan.limits
    plan.templates()
    for name in plan.models:
        _client(name, plan).close()


def model_proposers(plan: Plan, settings: Settings) -> dict[str, Proposer]:
    """The proposers that need no processes of their own: they ask a model, or a person."""
    proposer = ModelProposer(plan.templates(), settings)
    return {name: proposer for name in plan.proposers if name != COMPILER}


def open_clients(plan: Plan, store: Store) -> dict[str, Client]:
    """A client for each model, all within one budget.

    Raises `BadInputError` for a model that cannot be asked: no such name, no key, no price to
    account a budget in dollars with.
    """
    used = [call.reply.usage for call in store.calls()]
    spent = Usage(
        sum(usage.input_tokens for usage in used),
        sum(usage.output_tokens for usage in used),
        sum(usage.cached_tokens for usage in used),
        sum(usage.cost_usd or 0.0 for usage in used),
    )
    budget = Budget(plan.limits.usd, plan.limits.tokens, spent=spent)
    return {name: Budgeted(_client(name, plan), budget) for name in plan.models}


def _client(name: str, plan: Plan) -> Client:
    if plan.replay:
        return Replay(Path(plan.replay), name)
    base_url = plan.base_url if name.startswith("openai-compatible:") else ""
    client = open_client(name, options=ClientOptions(base_url=base_url or None))
    return Recording(client, Path(plan.record)) if plan.record else client


def chooser(plan: Plan, settings: Settings, store: Store) -> Callable[[Study], str]:
    """Says who is asked next: the compiler for its seeds, then whoever pays off."""

    def choose(study: Study) -> str:
        if len(study.nodes) < settings.compiler_seeds:
            return COMPILER
        if len(plan.proposers) == 1:
            return plan.proposers[0]
        spent_usd: dict[str, float] = {}
        for call in store.calls():
            cost_usd = call.reply.usage.cost_usd or 0.0
            spent_usd[call.reply.model] = spent_usd.get(call.reply.model, 0.0) + cost_usd
        return choose_proposer(plan.proposers, study.nodes, spent_usd)

    return choose


def clock(plan: Plan) -> Callable[[], str | None]:
    """Says why there shall be no next step, once the budget's time is over."""
    started, limit_s = time.monotonic(), plan.limits.seconds

    def spent() -> str | None:
        if limit_s is not None and time.monotonic() - started >= limit_s:
            return f"the budget's {limit_s:g} s are over"
        return None

    return spent
