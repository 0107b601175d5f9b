"""The proposers of a run, and the clients that answer for them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node, busy_s
from adaexplore.core.problem import Language, Problem
from adaexplore.core.protocols.client import ModelClient
from adaexplore.core.protocols.proposer import Proposer
from adaexplore.core.rule import Rule
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import as_setting, option_name
from adaexplore.core.settings.limits import BudgetLimits
from adaexplore.core.text.units import duration_s
from adaexplore.languages import DIALECTS
from adaexplore.llm.budget import Budget, BudgetedClient, counted, total
from adaexplore.llm.options import COMPATIBLE, ClientOptions
from adaexplore.llm.providers import open_client
from adaexplore.llm.replay import RecordingClient, ReplayClient
from adaexplore.memory.files import from_data, to_data
from adaexplore.memory.update import check_updatable
from adaexplore.propose.model.prompts import Briefing, Prompts, read_prompts
from adaexplore.propose.model.proposer import ModelProposer
from adaexplore.propose.model.published import PublishedPrompts
from adaexplore.propose.model.rehearsal import rehearse
from adaexplore.run.asks.ledger import Ledger
from adaexplore.run.parts import Parts
from adaexplore.run.recall import (
    linting,
    memory_for,
    not_taught,
    recalling,
    require_recalled,
)
from adaexplore.run.starts import Start, read_starts, starts_of
from adaexplore.search.ensemble import choose_proposer
from adaexplore.store import RunRecord, Store

COMPILER = "compiler"
NO_PARTS = Parts()


@dataclass(frozen=True, slots=True)
class Plan:
    """The sources of a run's proposals, read when the run begins and kept with it.

    `proposers` are the names of those that propose: models, objects of the user, "compiler",
    "manual". `objects` are those that the user passed as Python objects. `templates`, by file, and
    `rules` are the contents of `Config.prompts` and `Config.memory`: prompts are the same wherever
    the run goes on. `starts` are the kernels of `Config.start_from`.
    """

    proposers: tuple[str, ...]
    objects: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = field(default=(), repr=False)
    templates: Mapping[str, str] = field(default_factory=dict, repr=False)
    starts: tuple[Start, ...] = field(default=(), repr=False)

    @staticmethod
    def of(run: RunRecord) -> Plan:
        """Return the plan of a recorded run."""
        rules = run.plan.get("rules")
        return Plan(
            run.proposers,
            tuple(run.plan.get("objects", ())),
            tuple(from_data(rules, "the run's memory")) if rules else (),
            run.plan.get("templates", {}),
            starts_of(run),
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the record of a run, which names the proposers beside it."""
        return {
            "objects": list(self.objects),
            "rules": to_data(self.rules),
            "templates": dict(self.templates),
            "prompts_digest": self.digest,
            "starts": [start.to_json() for start in self.starts],
        }

    @property
    def models(self) -> list[str]:
        """The proposers that are models."""
        return [name for name in self.proposers if name not in (COMPILER, MANUAL)]

    @property
    def asks_prompts(self) -> bool:
        """True where a model, a person or an agent answers prompts."""
        return self.proposers != (COMPILER,)

    @property
    def prompts(self) -> Prompts:
        """The prompts in force."""
        return _compiled(tuple(self.templates.items()))

    @property
    def published_prompts(self) -> Prompts:
        """The prompts in force where they tell only what the published search shows."""
        return _compiled(tuple(self.templates.items()), PublishedPrompts)

    @property
    def digest(self) -> str:
        """Content hash of the prompts in force."""
        return self.prompts.digest


@functools.lru_cache(maxsize=8)
def _compiled(templates: tuple[tuple[str, str], ...], kind: type[Prompts] = Prompts) -> Prompts:
    """Return the prompts with these templates; to compile them takes a tenth of a second."""
    return kind(dict(templates))


def make_plan(config: Config, parts: Parts = NO_PARTS) -> Plan:
    """Return the plan of a configuration, with its templates read, and without rules.

    Raises `BadInputError` for the name of a proposer that is no model, options that do not fit
    together, or templates that cannot be used.
    """
    objects = (*parts.clients, *parts.proposers)
    names = tuple(dict.fromkeys((*config.model, *objects)))
    for name in (COMPILER, MANUAL):
        if name in config.model:
            raise BadInputError(f"--model {name}: that is no model; write --proposer {name}")
    if config.proposer == MANUAL:
        if names:
            raise BadInputError("--proposer manual: prompts are answered by you or by a --model")
        names = (MANUAL,)
    elif config.proposer == COMPILER or not names:
        names = (*names, COMPILER)
    plan = Plan(names, objects)
    return with_templates(plan, config.prompts) if plan.asks_prompts else plan


def with_templates(plan: Plan, folder: str) -> Plan:
    """Return the plan with the templates in a folder, or unchanged without a folder.

    Raises `BadInputError` for a folder or a template that cannot be used.
    """
    if not folder:
        return plan
    templates = read_prompts(Path(folder))
    _compiled(tuple(templates.items()))  # refuses a template that cannot be read
    return replace(plan, templates=templates)


def try_templates(plan: Plan, run: RunRecord) -> None:
    """Render the user's own templates; `BadInputError` for one that uses an unknown name."""
    if plan.templates:
        rules = tuple(rule.statement for rule in plan.rules)
        briefing = Briefing(run.problem, run.reference, run.environment, rules)
        rehearse(plan.prompts, briefing)
        rehearse(plan.published_prompts, briefing)


def with_starts(plan: Plan, config: Config, problem: Path) -> Plan:
    """Return the plan with the kernels to start from, for the problem in a file.

    Raises `BadInputError` for a place without a usable kernel.
    """
    return replace(plan, starts=read_starts(config.start_from, problem))


def with_memory(plan: Plan, config: Config, problem: Problem) -> tuple[Plan, Config]:
    """Return the plan with the rules of the run's memory, and the configuration that names it.

    Raises `BadInputError` for a memory that cannot be used.
    """
    if not plan.asks_prompts:
        return plan, config
    name, rules = memory_for(problem, config.memory)
    require_recalled(rules, config)
    return replace(plan, rules=rules), config.model_copy(update={"memory": name})


def check(config: Config, plan: Plan, parts: Parts = NO_PARTS) -> None:
    """Check that a plan can be carried out, before any process is started.

    Raises `BadInputError` for options that do not fit together, or a model without a name, a key,
    or a price to account a budget in dollars with.
    """
    limits = config.limits
    if (limits.usd or limits.tokens) and not plan.models:
        raise BadInputError("a budget in usd or tokens goes with --model; there is none")
    of_prompts = () if MANUAL in plan.proposers else ("prompts", "memory")
    for name in (*of_prompts, "record", "replay", "base_url", "memory_update"):
        if getattr(config, name) and not plan.models:
            raise BadInputError(f"{option_name(name)} goes with --model; there is none")
    for name in ("temperature", "reply_tokens", "reasoning", "concurrency"):
        if (value := getattr(config, name)) is not None and not plan.models:
            raise BadInputError(f"{as_setting(name, value)} goes with --model; there is none")
    if config.record and config.replay:
        raise BadInputError("--record and --replay: a replay has nothing new to record")
    if config.base_url and not any(name.startswith(f"{COMPATIBLE}:") for name in plan.models):
        raise BadInputError(
            f"--base-url goes with --model {COMPATIBLE}:MODEL; other providers have variables of "
            "their own for it, such as OPENAI_BASE_URL"
        )
    with open_clients(config, plan, parts=parts):
        pass


def check_update(config: Config, language: Language) -> None:
    """Raise `BadInputError` for a memory that cannot be updated, or has nothing to learn."""
    if not config.memory_update:
        return
    path = Path(config.memory_update)
    if objection := not_taught(language, config.learning):
        raise BadInputError(f"--memory-update: {objection}")
    if not path.parent.is_dir():
        raise BadInputError(f"--memory-update {path}: {path.parent} is no folder")
    check_updatable(path)


def check_compiler(problem: Problem) -> None:
    """Raise `BadInputError` where the compiler can write nothing for the problem."""
    dialect = DIALECTS[problem.language]
    if not dialect.by_compiler:
        raise BadInputError(
            f"--proposer compiler: TorchInductor writes no {dialect.title}; give a --model, answer "
            "the prompts yourself (--proposer manual), or leave --language out for Triton"
        )
    if problem.target:
        raise BadInputError(
            "--proposer compiler: TorchInductor writes Triton only where there is a GPU; without "
            "one it writes cpp: leave --language and --target out"
        )
    if problem.checks.backward:
        raise BadInputError(
            "--proposer compiler: what TorchInductor writes here has no backward pass; with "
            "--with-backward give a --model, or answer the prompts yourself (--proposer manual)"
        )


def check_answered(run: RunRecord, path: Path) -> None:
    """Raise `BadInputError` for a run that is not answered by `ask` and `tell`."""
    if MANUAL not in run.proposers:
        raise BadInputError(
            f"{path} is searched by {', '.join(run.proposers)}: go on with `adaexplore resume`; "
            "`adaexplore explore --proposer manual` makes a run that you or an agent answer"
        )


def model_proposers(plan: Plan, config: Config) -> dict[str, Proposer]:
    """Return the proposers that ask a model or a person; they need no processes of their own."""
    recall = recalling(plan.rules, config)
    prompts = plan.published_prompts if config.contents == "published" else plan.prompts
    proposer = ModelProposer(prompts, config, recall, linting(plan.rules))
    return {name: proposer for name in plan.proposers if name != COMPILER}


@contextmanager
def open_clients(
    config: Config, plan: Plan, *stores: Store, parts: Parts = NO_PARTS
) -> Iterator[dict[str, ModelClient]]:
    """Open a client for each model, within one budget; the calls in `stores` count against it.

    Raises `BadInputError` for a model that cannot be asked: no such name, no key, no price to
    account a budget in dollars with.
    """
    calls = [call for store in stores for call in store.calls()]
    spent = total(counted(call.prompt, call.reply) for call in calls)
    budget = Budget(config.limits.usd, config.limits.tokens, spent=spent)
    clients: dict[str, ModelClient] = {}
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
            client = own or stack.enter_context(closing(_client(name, config)))
            clients[name] = BudgetedClient(client, budget)
        yield clients


def _client(name: str, config: Config) -> ModelClient:
    if config.replay:
        return ReplayClient(Path(config.replay), name)
    base_url = config.base_url if name.startswith(f"{COMPATIBLE}:") else ""
    options = ClientOptions(
        base_url=base_url or None,
        max_tokens=config.reply_tokens,
        temperature=config.temperature,
        reasoning=config.reasoning,
        concurrency=config.calls_at_once,
    )
    client = open_client(name, options=options)
    return RecordingClient(client, Path(config.record)) if config.record else client


def chooser(plan: Plan, config: Config, store: Store) -> Callable[[Ledger], str]:
    """Return the choice of the next proposer: the compiler for its seeds, then by gain for cost."""

    def choose(ledger: Ledger) -> str:
        made = max(len(ledger.nodes), store.ask_count()) - len(plan.starts)
        if made < config.compiler_seeds:
            return COMPILER
        if len(plan.proposers) == 1:
            return plan.proposers[0]
        spent_usd: dict[str, float] = {}
        for call in store.calls():
            cost_usd = call.reply.usage.cost_usd or 0.0
            spent_usd[call.reply.model] = spent_usd.get(call.reply.model, 0.0) + cost_usd
        under_way = [record.ask.proposer for record in store.asks("open", "queued")]
        return choose_proposer(plan.proposers, ledger.nodes, spent_usd, under_way)

    return choose


def clock(limits: BudgetLimits, nodes: Sequence[Node]) -> Callable[[], str | None]:
    """Return a function that gives the reason to stop once the steps have taken the budget's time.

    The steps of earlier sessions, `nodes`, count too; the time between sessions does not.
    """
    started, limit_s = time.monotonic() - max(busy_s(nodes), default=0.0), limits.seconds

    def spent() -> str | None:
        if limit_s is not None and time.monotonic() - started >= limit_s:
            return f"the budget's {duration_s(limit_s)} are over"
        return None

    return spent
