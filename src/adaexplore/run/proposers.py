"""Who proposes in a run: from names to proposers, and to the clients that answer for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from adaexplore.core.ask import MANUAL
from adaexplore.core.client import Client
from adaexplore.core.config import Config
from adaexplore.core.errors import BadInputError
from adaexplore.core.limits import BudgetLimits, parse_budget
from adaexplore.core.node import Node, busy_s
from adaexplore.core.problem import Problem
from adaexplore.core.proposer import Context, Proposer
from adaexplore.core.rule import Rule
from adaexplore.core.units import duration_s
from adaexplore.languages import DIALECTS
from adaexplore.llm.budget import Budget, BudgetedClient, counted, total
from adaexplore.llm.options import COMPATIBLE, ClientOptions
from adaexplore.llm.providers import open_client
from adaexplore.llm.replay import RecordingClient, ReplayClient
from adaexplore.memory.files import from_data, load_memory, to_data
from adaexplore.propose.model.prompts import Briefing, Prompts, read_prompts
from adaexplore.propose.model.proposer import ModelProposer
from adaexplore.propose.model.rehearsal import rehearse
from adaexplore.run.parts import Parts
from adaexplore.run.recall import linting, memory_for, recalling
from adaexplore.run.study import Study
from adaexplore.search.ensemble import choose_proposer
from adaexplore.search.failure_summary import failure_statistics
from adaexplore.store import RunRecord, Store

COMPILER = "compiler"
NO_PARTS = Parts()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run's proposals come from, as the store keeps it.

    `proposers` are asked, by what they bring: "compiler", "manual", or names of models. `budget` is
    as `parse_budget` reads it; `record` and `replay` are folders with models' replies; `base_url`
    is for `openai-compatible:` models. So many steps as `parallel` are under way at once. `prompts`
    is the folder of the user's own templates and `memory` names the memory; `templates`, by file,
    and `rules` are what was in them when the run began: prompts are the same wherever the run goes
    on. `memory_update` is the memory that learns from what fails. `objects` are the proposers that
    the user passed as Python objects.
    """

    proposers: tuple[str, ...]
    budget: str = ""
    prompts: str = ""
    record: str = ""
    replay: str = ""
    base_url: str = ""
    parallel: int = 1
    memory: str = ""
    memory_update: str = ""
    objects: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = field(default=(), repr=False)
    templates: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def models(self) -> list[str]:
        """The proposers that are models."""
        return [name for name in self.proposers if name not in (COMPILER, MANUAL)]

    @property
    def limits(self) -> BudgetLimits:
        """The budget, parsed; `BadInputError` for one that says nothing."""
        return parse_budget(self.budget) if self.budget else BudgetLimits()

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        values = asdict(replace(self, rules=()))
        return values | {"rules": to_data(self.rules), "prompts_digest": self.digest}

    @staticmethod
    def from_json(data: Mapping[str, Any], proposer: str) -> Plan:
        """The plan of a run; one that has none is its single `proposer`'s."""
        known = {f.name for f in fields(Plan)}
        values = {key: value for key, value in data.items() if key in known}
        if "rules" in values:
            values["rules"] = tuple(from_data(values["rules"], "the run's memory"))
        return Plan(**({"proposers": (proposer,)} | values))

    def prompt_maker(self) -> Prompts:
        """What makes the prompts."""
        return Prompts(self.templates)

    @property
    def digest(self) -> str:
        """Content hash of the prompts in force."""
        return self.prompt_maker().digest


def with_templates(plan: Plan, folder: str) -> Plan:
    """The plan with the templates in a folder, or as it is without a folder.

    Raises `BadInputError` for a folder or a template that cannot be used.
    """
    if not folder:
        return plan
    plan = replace(plan, prompts=folder, templates=read_prompts(Path(folder)))
    plan.prompt_maker()
    return plan


def try_templates(plan: Plan, run: RunRecord) -> None:
    """Raises `BadInputError` for templates of the user's own that ask for what is not there."""
    if plan.templates:
        rules = tuple(rule.statement for rule in plan.rules)
        briefing = Briefing(run.problem, run.reference, run.environment, rules)
        rehearse(plan.prompt_maker(), briefing)


def with_memory(plan: Plan, problem: Problem) -> Plan:
    """The plan with its memory's rules, if anybody is there to read them.

    Raises `BadInputError` for a memory that cannot be used.
    """
    if not plan.models and MANUAL not in plan.proposers:
        return plan
    name, rules = memory_for(problem, plan.memory)
    return replace(plan, memory=name, rules=rules)


def proposers(models: Sequence[str], compiler: bool) -> tuple[str, ...]:
    """Who is asked, from what was asked for: the compiler too if `compiler`, or if nobody else is.

    Raises `BadInputError` for the name of a proposer that is no model.
    """
    names = tuple(dict.fromkeys(models))
    if COMPILER in names:
        raise BadInputError(f"--model {COMPILER}: that is no model; write --proposer {COMPILER}")
    if MANUAL in names:
        raise BadInputError(
            f"--model {MANUAL}: that is no model; `adaexplore start` makes a run that you or an "
            "agent answer"
        )
    return (*names, COMPILER) if compiler or not names else names


def check(plan: Plan, parts: Parts = NO_PARTS) -> None:
    """Raises `BadInputError` for a plan that cannot be followed, before anything is started.

    A budget that says nothing, broken templates, options that do not fit together, a model without
    a name, a key, or a price to account a budget in dollars with.
    """
    limits = plan.limits
    if (limits.usd or limits.tokens) and not plan.models:
        raise BadInputError("a budget in usd or tokens goes with --model; there is none")
    of_prompts = () if MANUAL in plan.proposers else ("prompts", "memory")
    for option in (*of_prompts, "record", "replay", "base_url", "memory_update"):
        if getattr(plan, option) and not plan.models:
            raise BadInputError(f"--{option.replace('_', '-')} goes with --model; there is none")
    if plan.record and plan.replay:
        raise BadInputError("--record and --replay: a replay has nothing new to record")
    if plan.base_url and not any(name.startswith(f"{COMPATIBLE}:") for name in plan.models):
        raise BadInputError(
            f"--base-url goes with --model {COMPATIBLE}:MODEL; other providers have variables of "
            "their own for it, such as OPENAI_BASE_URL"
        )
    plan.prompt_maker()
    with open_clients(plan, parts=parts):
        pass


def check_update(plan: Plan, problem: Problem) -> None:
    """Raises `BadInputError` for a memory that cannot be updated, or has nothing to learn."""
    if not plan.memory_update:
        return
    path = Path(plan.memory_update)
    if problem.language != "triton":
        raise BadInputError("--memory-update: rules are about Triton: --language triton")
    if not path.parent.is_dir():
        raise BadInputError(f"--memory-update {path}: {path.parent} is no folder")
    if path.exists():
        load_memory(path)


def check_compiler(problem: Problem) -> None:
    """Raises `BadInputError` where the compiler writes nothing in the problem's language."""
    dialect = DIALECTS[problem.language]
    if not dialect.by_compiler:
        raise BadInputError(
            f"--proposer compiler: TorchInductor writes no {dialect.title}; give a --model, answer "
            "the prompts yourself (`adaexplore start`), or leave --language out for Triton"
        )
    if problem.target:
        raise BadInputError(
            "--proposer compiler: TorchInductor writes Triton only where there is a GPU; without "
            "one it writes cpp: leave --language and --target out"
        )


def check_answered(run: RunRecord, path: Path) -> None:
    """Raises `BadInputError` for a run that is no matter of ask and tell."""
    if MANUAL not in Plan.from_json(run.plan, run.proposer).proposers:
        raise BadInputError(
            f"{path} is searched by {run.proposer}: go on with `adaexplore resume`; "
            "`adaexplore start` makes a run that you or an agent answer"
        )


def check_searched(run: RunRecord, path: Path) -> None:
    """Raises `BadInputError` for a run that only ask and tell go on with."""
    if MANUAL in Plan.from_json(run.plan, run.proposer).proposers:
        raise BadInputError(
            f"{path} is answered by you or an agent: go on with `adaexplore ask`, `tell` and "
            "`evaluate-pending`"
        )


def model_proposers(plan: Plan, settings: Config) -> dict[str, Proposer]:
    """The proposers that need no processes of their own: they ask a model, or a person."""
    recall = recalling(plan.rules, settings)
    if settings.policy == "polca":
        recall = _summarizing(recall)
    proposer = ModelProposer(plan.prompt_maker(), settings, recall, linting(plan.rules))
    return {name: proposer for name in plan.proposers if name != COMPILER}


def _summarizing(recall: Callable[[Context], list[str]]) -> Callable[[Context], list[str]]:
    """What `recall` has, and what the steps so far teach (`search.failure_summary`)."""
    return lambda context: [*recall(context), *failure_statistics(context.history)]


@contextmanager
def open_clients(
    plan: Plan, *stores: Store, parts: Parts = NO_PARTS
) -> Iterator[dict[str, Client]]:
    """A client for each model, all within one budget, of which the runs in `stores` have used some.

    Raises `BadInputError` for a model that cannot be asked: no such name, no key, no price to
    account a budget in dollars with.
    """
    calls = [call for store in stores for call in store.calls()]
    spent = total(counted(call.prompt, call.reply) for call in calls)
    budget = Budget(plan.limits.usd, plan.limits.tokens, spent=spent)
    clients: dict[str, Client] = {}
    with ExitStack() as stack:
        for name in plan.models:
            if name in parts.proposers:
                continue
            own = parts.clients.get(name)
            if own is None and name in plan.objects:
                raise BadInputError(
                    f"{name} was a Python object when the run began: go on from Python, with "
                    "adaexplore.Run(path).resume(model=...) or (proposer=...)"
                )
            client = own or stack.enter_context(closing(_client(name, plan)))
            clients[name] = BudgetedClient(client, budget)
        yield clients


def _client(name: str, plan: Plan) -> Client:
    if plan.replay:
        return ReplayClient(Path(plan.replay), name)
    base_url = plan.base_url if name.startswith(f"{COMPATIBLE}:") else ""
    client = open_client(name, options=ClientOptions(base_url=base_url or None))
    return RecordingClient(client, Path(plan.record)) if plan.record else client


def chooser(plan: Plan, settings: Config, store: Store) -> Callable[[Study], str]:
    """Says who is asked next: the compiler for its seeds, then whoever pays off."""

    def choose(study: Study) -> str:
        if max(len(study.nodes), store.ask_count()) < settings.compiler_seeds:
            return COMPILER
        if len(plan.proposers) == 1:
            return plan.proposers[0]
        spent_usd: dict[str, float] = {}
        for call in store.calls():
            cost_usd = call.reply.usage.cost_usd or 0.0
            spent_usd[call.reply.model] = spent_usd.get(call.reply.model, 0.0) + cost_usd
        under_way = [record.ask.proposer for record in store.asks("open", "queued")]
        return choose_proposer(plan.proposers, study.nodes, spent_usd, under_way)

    return choose


def clock(limits: BudgetLimits, nodes: Sequence[Node]) -> Callable[[], str | None]:
    """Says why there shall be no next step, once the steps have taken the budget's time.

    Those of earlier sessions, `nodes`, count as well; what went on between sessions does not.
    """
    started, limit_s = time.monotonic() - max(busy_s(nodes), default=0.0), limits.seconds

    def spent() -> str | None:
        if limit_s is not None and time.monotonic() - started >= limit_s:
            return f"the budget's {duration_s(limit_s)} are over"
        return None

    return spent
