"""Ask and tell: hand out the steps of a search and take back their results.

    ask, turn = ledger.prompt("manual")
    while isinstance(turn, Prompt):                    # a person answers, now or next week
        turn = ledger.tell(ask.id, turn_number, reply)
    for ask, proposal in ledger.queued():               # on the machine with the GPU
        ledger.record(ask, proposal, evaluation)

Everything is in the store: every process makes a new ledger. Several asks may be open at once; they
are answered in any order, late, or never.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from adaexplore.core.ask import Ask, AskRecord, Exchange
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node, StepKind
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Prompt, Reply
from adaexplore.core.protocols.policy import Policy
from adaexplore.core.protocols.proposer import Context, Dialogue, Proposer
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Evaluation, Passed, rank
from adaexplore.propose.tuner.proposer import ORIGIN as TUNER
from adaexplore.run.asks.batches import Batches
from adaexplore.run.verdicts.evaluation_cache import EvaluationCache
from adaexplore.search import (
    Tree,
    context_ids,
    needs_remeasure,
    reward_function,
    shrunk,
    step_rng,
    traits_of,
)
from adaexplore.search import make_policy as policy_of
from adaexplore.store import Store

Turn = Prompt | Proposal
"""The state of an ask: the prompt that waits for a reply, or the proposal."""


class Ledger:
    """The ledger of one run's steps, over its store: it hands out asks and records results.

    `proposers` answer asks and are keyed by name. `make_policy` replaces the policy that the
    configuration names. `batches` has what steps that are asked for at once share.
    """

    def __init__(
        self,
        store: Store,
        proposers: Mapping[str, Proposer],
        now: Callable[[], float] = time.time,
        make_policy: Callable[[Config], Policy] | None = None,
    ) -> None:
        self._store = store
        self._run = store.run()
        self._proposers = proposers
        self._now = now
        settings = self._run.config.for_steps(self._run.steps)
        self._policy = (make_policy or policy_of)(settings)
        self._reward = reward_function(settings.reward, settings.compiled)
        self._tree = Tree()
        self._cache = EvaluationCache()
        self.nodes: list[Node] = []
        self.best: Node | None = None
        self._searched = 0
        self._batch = 0
        self.batches = Batches(
            store, proposers, self._context, outlined=self._run.config.names_outlines
        )
        for node in store.nodes():
            self._add(node)
        self._in_flight: dict[int, Ask] = {}
        for record in store.asks("open", "queued"):
            self._begin_step(record.ask)

    def ask(self, proposer: str) -> Ask:
        """Open an ask where the policy grows the tree next; asks in flight count as failed."""
        ask = self.choose(proposer)
        self.begin(ask)
        return ask

    def prompt(self, proposer: str) -> tuple[Ask, Prompt]:
        """Open an ask that a model or a person answers; return it with its first prompt.

        Raises `BadInputError`, and opens no ask, where the prompt cannot be made.
        """
        ask = self.choose(proposer)
        prompt = next(self.dialogue(ask))
        self.begin(ask)
        return ask, prompt

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make one batch of the asks that are opened within: they are asked for at once."""
        self._batch = self._store.ask_count() + 1
        try:
            yield
        finally:
            self._batch = 0

    def choose(self, proposer: str) -> Ask:
        """Return the next ask without opening it."""
        self.expire_late()
        number = self._store.ask_count() + 1
        rng = step_rng(self._run.seed, number)
        place = self._policy.select(self._tree, rng)
        shown = context_ids(self._tree, place, self._run.config, rng)
        seed = rng.randrange(2**31)
        return self.ask_at(place.node_id, place.step_kind, seed, proposer, shown)

    def choose_variant(self, base: Node) -> Ask:
        """Return an ask for a variant of a kernel, with other numbers, without opening it."""
        number = self._store.ask_count() + 1
        seed = step_rng(self._run.seed, number).randrange(2**31)
        return self.ask_at(base.id, "tune", seed, TUNER, (base.id,))

    def ask_at(
        self,
        parent_id: int,
        step_kind: StepKind,
        seed: int,
        proposer: str,
        shown: tuple[int, ...] = (),
    ) -> Ask:
        """Return an ask at a place of the caller's choice, without opening it."""
        large = step_kind == "large"
        return Ask(
            id=self._store.ask_count() + 1,
            parent_id=parent_id,
            step_kind=step_kind,
            seed=seed,
            pool=shown if large else (),
            window=() if large else shown,
            seen=len(self.nodes),
            proposer=proposer,
            opened_at=self._now(),
            batch=self._batch,
            others=self._others() if large else (),
        )

    @property
    def to_tune(self) -> Node | None:
        """The kernel whose numbers are worth varying: the best, or the base of that variant."""
        node = self.best
        while node is not None and node.step_kind == "tune":
            node = self.nodes[node.parent_id - 1]
        return node

    def begin(self, ask: Ask) -> None:
        """Open an ask that was chosen."""
        self._store.open_ask(ask)
        self._begin_step(ask)

    @property
    def searched(self) -> int:
        """The number of recorded steps that were planned."""
        return self._searched

    @property
    def left(self) -> int:
        """The number of planned steps that are neither recorded nor in flight."""
        under_way = sum(ask.is_planned for ask in self._in_flight.values())
        return self._run.steps - self.searched - under_way

    def open(self) -> list[Ask]:
        """Return the asks that wait for a reply."""
        self.expire_late()
        return [record.ask for record in self._store.asks("open")]

    def turn(self, ask_id: int) -> tuple[int, Turn]:
        """Return the number of replies of an ask, and its state; queue a proposal that is new.

        Raises `BadInputError` for an ask that is unknown, done or expired, and for one that waits
        for another's outlines.
        """
        record = self._record_of(ask_id)
        if record.proposal is not None:
            return len(self._store.calls(ask_id)), record.proposal
        prompts, proposal = self.replay(record.ask)
        if proposal is None:
            return len(prompts) - 1, prompts[-1]
        return len(prompts), self.queue(record.ask, proposal)

    def tell(self, ask_id: int, turn: int, reply: Reply) -> Turn:
        """Keep the reply to prompt number `turn` (from 0) of an ask; return the state after it.

        Raises `BadInputError`, and keeps nothing, for a prompt that has a reply already, or an ask
        that is unknown, done or expired.
        """
        answered, prompt = self.turn(ask_id)
        if turn != answered or isinstance(prompt, Proposal):
            raise BadInputError(
                f"ask {ask_id}, turn {turn + 1} has been answered already; the first answer counts"
            )
        self.keep(ask_id, prompt, reply)
        _, after = self.turn(ask_id)
        return after

    def keep(self, ask_id: int, prompt: Prompt, reply: Reply) -> None:
        """Keep one exchange of an open ask; a caller keeps it before using the reply."""
        self._store.add_call(Exchange(ask_id, prompt, reply, self._now()))

    def queue(self, ask: Ask, proposal: Proposal) -> Proposal:
        """Keep the proposal of an ask, which waits for its evaluation from now on."""
        proposal = replace(proposal, origin=ask.proposer)
        self._store.queue(ask.id, proposal)
        return proposal

    def queued(self) -> list[tuple[Ask, Proposal]]:
        """Return the proposals that wait for their evaluation."""
        records = self._store.asks("queued")
        return [(record.ask, record.proposal) for record in records if record.proposal]

    def cached(self, proposal: Proposal) -> Evaluation | None:
        """Return the evaluation of an identical candidate of this run, None if there is none."""
        return self._cache.of(proposal.candidate)

    def needs_remeasure(self, evaluation: Evaluation) -> bool:
        """Return True for an evaluation that must be repeated before it is recorded."""
        best = self.best.evaluation if self.best else None
        return self._run.config.rechecks and needs_remeasure(evaluation, best)

    def parent(self, ask: Ask) -> Node | None:
        """Return the node that an ask grows from; None for the empty root."""
        return self.nodes[ask.parent_id - 1] if ask.parent_id else None

    def record(
        self,
        ask: Ask,
        proposal: Proposal,
        evaluation: Evaluation,
        *,
        propose_s: float = 0.0,
        reused: bool = False,
        repeats: tuple[Evaluation, ...] = (),
    ) -> Node:
        """Record the step of a queued ask.

        A candidate that compiled to the same code as another takes over its evaluation.
        """
        first = None if reused else self._cache.compiled_alike(evaluation)
        node = Node(
            id=len(self.nodes) + 1,
            parent_id=ask.parent_id,
            step_kind=ask.step_kind,
            proposal=proposal,
            evaluation=first or evaluation,
            started_at=ask.opened_at,
            propose_s=propose_s,
            reused=reused or first is not None,
            repeats=repeats,
            ask_id=ask.id,
        )
        self._store.record(node)
        self._end_step(ask.id)
        self._add(node)
        return node

    def replay(self, ask: Ask) -> tuple[list[Prompt], Proposal | None]:
        """Replay the recorded replies of an ask with the current prompts and parsers.

        Returns the prompts in order, and the proposal; None where one more reply is needed.
        """
        dialogue, prompts = self.dialogue(ask), []
        try:
            prompts.append(next(dialogue))
            for reply in self.replies(ask):
                prompts.append(dialogue.send(reply))  # noqa: PERF401 - a generator cannot end so
        except StopIteration as end:
            return prompts, replace(end.value, origin=ask.proposer)
        return prompts, None

    def is_answered(self, ask: Ask) -> bool:
        """Return True for an open ask whose replies make a proposal: a kill kept it from there."""
        known = ask.proposer in self._proposers
        return known and bool(self.replies(ask)) and self.replay(ask)[1] is not None

    def replies(self, ask: Ask) -> list[Reply]:
        """Return the replies of an ask."""
        return [call.reply for call in self._store.calls(ask.id)]

    def expire_late(self) -> None:
        """End the open asks whose time for an answer is over."""
        limit_s = 3600.0 * self._run.config.ask_expires_h
        now = self._now()
        if all(now - ask.opened_at <= limit_s for ask in self._in_flight.values()):
            return
        for record in self._store.asks("open"):
            if self._now() - record.ask.opened_at > limit_s:
                self._store.expire(record.ask.id)
                self._end_step(record.ask.id)

    def _record_of(self, ask_id: int) -> AskRecord:
        self.expire_late()
        record = self._store.find_ask(ask_id)
        if record is None:
            raise BadInputError(f"there is no ask {ask_id} in this run")
        if record.state == "done":
            raise BadInputError(f"ask {ask_id} has been answered and evaluated")
        if record.state == "expired":
            raise BadInputError(f"ask {ask_id} has expired; take a new one with: adaexplore ask")
        return record

    def dialogue(self, ask: Ask) -> Dialogue:
        """Return the dialogue of an ask from its beginning; any thread may continue it.

        Raises `BadInputError` for an ask whose proposer is not available here, and for one that
        waits for another's outlines.
        """
        proposer = self._proposers.get(ask.proposer)
        if proposer is None:
            raise BadInputError(f"ask {ask.id} is for {ask.proposer}, which is not available here")
        return proposer.begin(self.batches.context(ask))

    def _context(self, ask: Ask) -> Context:
        nodes = self.nodes
        return Context(
            problem=self._run.problem,
            step_kind=ask.step_kind,
            seed=ask.seed,
            window=tuple(nodes[i - 1] for i in ask.window),
            pool=tuple(nodes[i - 1] for i in ask.pool),
            history=tuple(nodes[: ask.seen]),
            in_flight=max(ask.id - 1 - ask.seen, 0),
            others=ask.others,
            facts=self._store.reference_for(ask.id),
            environment=self._run.environment,
        )

    def _others(self) -> tuple[str, ...]:
        """Return what is known of the large steps in flight, a line for each of them."""
        large = {ask.id for ask in self._in_flight.values() if ask.step_kind == "large"}
        records = self._store.asks("open", "queued") if large else []
        lines = (self.batches.idea(record) for record in records if record.ask.id in large)
        return tuple(filter(None, lines))

    def _begin_step(self, ask: Ask) -> None:
        """Count an ask in flight as failed in the tree, so that the next ask goes elsewhere."""
        self._in_flight[ask.id] = ask
        self._tree.begin(ask.parent_id, ask.step_kind)

    def _end_step(self, ask_id: int) -> None:
        ask = self._in_flight.pop(ask_id, None)
        if ask is not None:
            self._tree.end(ask.parent_id, ask.step_kind)

    def _add(self, node: Node) -> None:
        """Add a recorded node to the tree, the policy and the cache."""
        evaluation = node.evaluation
        self.nodes.append(node)
        self._searched += node.is_planned
        if evaluation.status == "infra_error":
            self._tree.add_unjudged(node.id, node.parent_id, node.step_kind)
            return
        self._grow(node)
        self._policy.record(self._tree, node.id, traits_of(node))
        self._cache.add(node)
        if isinstance(evaluation, Passed) and (
            self.best is None or rank(evaluation) > rank(self.best.evaluation)
        ):
            self.best = node

    def _grow(self, node: Node) -> None:
        """Add a step to the tree; a repeat earns nothing, unless the settings count it."""
        evaluation, settings = node.evaluation, self._run.config
        if node.reused and isinstance(evaluation, Passed) and not settings.counts_repeats:
            self._tree.add_repeat(node.id, node.parent_id, node.step_kind)
            return
        believed = evaluation
        if settings.shrinks:
            believed = shrunk(evaluation, self._tree[node.parent_id].log_speed)
        reward = self._reward(believed)
        order = rank(believed, settings.ranking)
        planned = len(node.proposal.plan)
        self._tree.add(node.id, node.parent_id, node.step_kind, reward, order, planned=planned)
