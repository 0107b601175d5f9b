"""The loop: select, propose, evaluate, record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from adaexplore.core.ask import Ask, AskRecord
from adaexplore.core.candidate import Candidate
from adaexplore.core.client import BudgetSpentError, Client, ContextTooLongError, Prompt, Reply
from adaexplore.core.evaluation import Evaluation, Failed, Passed
from adaexplore.core.evaluator import Evaluator
from adaexplore.core.facts import ReferenceFacts
from adaexplore.core.node import Node, StepKind
from adaexplore.core.proposal import Proposal
from adaexplore.core.proposer import Dialogue, Proposer
from adaexplore.llm.outage import OutageTolerantClient
from adaexplore.propose.tuner.proposer import ORIGIN as TUNER
from adaexplore.propose.tuner.proposer import Tuner
from adaexplore.propose.tuner.space import space_of
from adaexplore.run.study import Study
from adaexplore.run.winner import Winner
from adaexplore.run.workers import Landed, Workers
from adaexplore.search import worst_of
from adaexplore.search.headroom import stop_reason
from adaexplore.store import Store


class Listener:
    """Told what a search is doing, as it does it; does nothing with it unless it is made to.

    One thread tells everything. Every step is proposed, evaluated and recorded in this order; where
    several are under way they are recorded in the order they are done, and get their ids then.
    """

    def prepared(self, facts: ReferenceFacts) -> None:
        """What is now known about the reference."""

    def proposing(self, step: int, step_kind: StepKind) -> None:
        """A step has begun."""

    def waiting(self, reason: str, wait_s: float) -> None:
        """A model is out of reach; it is asked again after so many seconds."""

    def evaluating(self, step: int, proposal: Proposal) -> None:
        """The step's candidate goes to the evaluator."""

    def rechecking(self, step: int, proposal: Proposal) -> None:
        """The step would take the lead, so it is evaluated once more."""

    def recorded(self, node: Node, *, best: bool) -> None:
        """The step is in the store; `best` if nothing before it was better."""

    def stopping(self, reason: str) -> None:
        """No further step is begun: the budget is spent, or no gain is to be expected."""

    def confirming(self, node: Node) -> None:
        """One of the best is measured again."""


@dataclass(eq=False, slots=True)
class _Step:
    """A step under way; `number` is the one it gets if those begun before it are recorded first."""

    ask: Ask
    number: int
    dialogue: Dialogue | None = None
    proposal: Proposal | None = None
    evaluations: tuple[Evaluation, ...] = ()
    propose_s: float = 0.0
    began: float = field(default_factory=time.monotonic)


class Search:
    """One problem's search over a store, new or resumed.

    All state is in the store: the tree is rebuilt from its nodes, every step draws from a generator
    of its own, and every model's reply is kept before it is used, so a resumed search continues as
    if it had never stopped. `proposers` and the `clients` that answer for those that ask a model go
    by name; `choose` says who is asked next, and `spent` why there shall be no next step, if so.

    So many steps as `parallel` are under way at once: their models' calls and their evaluations are
    waited for in threads, and the thread of `run` does everything else. With more than one the tree
    depends on who is done first; `proposers`, `clients` and `evaluator` are then used by several
    threads.
    """

    def __init__(
        self,
        store: Store,
        proposers: Mapping[str, Proposer],
        evaluator: Evaluator,
        listener: Listener,
        best_path: Path,
        *,
        clients: Mapping[str, Client] | None = None,
        choose: Callable[[Study], str] | None = None,
        spent: Callable[[], str | None] = lambda: None,
        sleep: Callable[[float], None] = time.sleep,
        parallel: int = 1,
    ) -> None:
        self._store = store
        self._run = store.run()
        self._evaluator = evaluator
        self._listener = listener
        self._choose = choose or (lambda _: next(iter(proposers)))
        self._spent = spent
        self._study = Study(store, {TUNER: Tuner(), **proposers})
        self._winner = Winner(self._study, store, best_path)
        self._parallel = parallel
        self._workers: Workers[_Step] = Workers()
        self._under_way: list[_Step] = []
        self._alike: dict[str, list[_Step]] = {}  # by candidate: the first of them is evaluated
        self._stopped = ""  # why no further step is begun
        self._error: Exception | None = None
        patience_s = self._run.config.outage_patience_s
        self._clients = {
            name: OutageTolerantClient(client, patience_s, self._waiting, sleep=sleep)
            for name, client in (clients or {}).items()
        }

    def run(self, until: int | None = None) -> str:
        """Goes on until the planned steps are recorded or there is a reason to stop; then confirms.

        With `until` it pauses once so many steps are recorded, and confirms nothing. Returns the
        reason for which it stopped, "" where it did not.

        Raises `BadProblemError` before the first step for a reference that cannot be verified
        against, `InfrastructureError` when the machinery is gone, and `BadInputError` when the
        store is full or a model refuses to be asked; what was recorded stays. Nothing new is begun
        then, and what is under way is waited for and kept. Ctrl-C waits for nothing.
        """
        facts = self._prepare()
        steps = min(until or self._run.steps, self._run.steps)
        self._go_through(self._planned(steps, facts))
        reason = self._stopped
        if steps == self._run.steps or reason:
            self._tune(self._run.config.tune)
            self._confirm()
        return reason

    def tune(self, variants: int) -> None:
        """Has so many variants of the best kernel in all, then confirms; raises as `run` does."""
        self._prepare()
        self._tune(variants)
        self._confirm()

    def _prepare(self) -> ReferenceFacts:
        facts = self._evaluator.prepare()
        self._store.set_reference(facts)
        self._listener.prepared(facts)
        self._winner.write()  # a kill may have come between recording and writing it
        self._study.expire_late()
        return facts

    def finish_queued(self) -> None:
        """Makes steps of the proposals that wait for their evaluation, and asks nobody.

        Confirms the winner once all planned steps are recorded. Raises as `run` does.
        """
        self._store.set_reference(self._evaluator.prepare())
        self._go_through(iter(self._store.asks("queued")))
        if self._study.searched >= self._run.steps:
            self._confirm()

    def _planned(self, steps: int, facts: ReferenceFacts) -> Iterator[AskRecord]:
        """The asks that a kill left under way, then new ones, as long as there are to be more."""
        left = iter(self._store.asks("open", "queued"))
        while self._study.searched + self._at_work(tuning=False) < steps:
            reason = self._spent() or stop_reason(self._study.nodes, facts, self._run.config)
            if reason:
                self._stop(reason)
                return
            yield next(left, None) or AskRecord(self._study.ask(self._choose(self._study)), "open")

    def _tried_all(self, base: Node) -> bool:
        """Whether the tuner has said that it knows no other variant."""
        return any(
            node.proposal.failure and node.step_kind == "tune" and node.parent_id == base.id
            for node in self._study.nodes
        )

    def _at_work(self, *, tuning: bool) -> int:
        return sum((step.ask.step_kind == "tune") == tuning for step in self._under_way)

    def _tune(self, variants: int) -> None:
        """Varies the numbers of the best kernel, which asks no model and so spends no budget."""
        base = self._study.to_tune
        if not variants or base is None or self._spent():
            return
        space = space_of(base.candidate, self._run.problem)
        if space.size < 2:
            self._listener.stopping(f"step {base.id} has no numbers to tune")
            return
        self._stopped = ""
        self._go_through(self._variants(base, min(variants, space.size - 1)))

    def _variants(self, base: Node, count: int) -> Iterator[AskRecord]:
        """The asks for variants that a kill left under way, then new ones."""
        under_way = self._store.asks("open", "queued")
        left = (record for record in under_way if record.ask.step_kind == "tune")
        made = sum(n.parent_id == base.id and n.step_kind == "tune" for n in self._study.nodes)
        while made < count and not self._tried_all(base):
            record = next(left, None)
            if record is None:
                ask = self._study.choose_variant(base)
                self._study.begin(ask)
                record = AskRecord(ask, "open")
            made += 1
            yield record

    def _go_through(self, asks: Iterator[AskRecord]) -> None:
        """Makes steps of asks, as many at once as allowed."""
        while True:
            while len(self._under_way) < self._parallel and not (self._stopped or self._error):
                record = next(asks, None)
                if record is None:
                    break
                self._begin(record)
            if not self._under_way:
                break
            self._land(self._workers.next())
        if self._error:
            raise self._error

    def _begin(self, record: AskRecord) -> None:
        ask = record.ask
        step = _Step(ask, number=len(self._study.nodes) + len(self._under_way) + 1)
        self._under_way.append(step)
        if record.proposal:
            self._proposed(step, record.proposal)
            return
        self._listener.proposing(step.number, ask.step_kind)
        step.dialogue = self._study.dialogue(ask)
        self._talk(step, [None, *self._study.replies(ask)])

    def _talk(self, step: _Step, replies: Sequence[Reply | None]) -> None:
        """Has the step's dialogue go on after these replies, None being its beginning."""
        assert step.dialogue
        client = self._clients.get(step.ask.proposer)
        self._workers.begin(step, partial(_advance, step.dialogue, replies, client))

    def _land(self, landed: Landed[_Step]) -> None:
        """Keeps what a worker brought, and has the step go on."""
        step = landed.key
        match landed.error, landed.result:
            case None, Proposal() as proposal:
                step.propose_s = time.monotonic() - step.began
                self._proposed(step, self._study.queue(step.ask, proposal))
            case None, (prompt, reply):
                self._study.keep(step.ask.id, prompt, reply)
                if self._error:
                    self._under_way.remove(step)
                else:
                    self._talk(step, [reply])
            case None, evaluation:
                self._evaluated(step, evaluation)
            case error, _:
                self._failed(step, error)

    def _failed(self, step: _Step, error: BaseException) -> None:
        """Leaves a step to a later session: its ask stays as it is in the store."""
        digest = step.proposal.candidate.digest if step.proposal else ""
        for lost in self._alike.pop(digest, [step]):
            self._under_way.remove(lost)
        if isinstance(error, BudgetSpentError):
            self._stop(str(error))
        elif isinstance(error, Exception):
            self._error = self._error or error
        else:
            raise error

    def _stop(self, reason: str) -> None:
        if not self._stopped:
            self._stopped = reason
            self._listener.stopping(reason)

    def _waiting(self, reason: str, wait_s: float) -> None:
        self._workers.call(partial(self._listener.waiting, reason, wait_s))

    def _proposed(self, step: _Step, proposal: Proposal) -> None:
        step.proposal = proposal
        if self._error:
            self._under_way.remove(step)
            return
        self._listener.evaluating(step.number, proposal)
        self._judge(step)

    def _judge(self, step: _Step) -> None:
        """Has a candidate evaluated, unless an identical one was or is."""
        assert step.proposal
        proposal = step.proposal
        known = self._study.known(proposal)
        if proposal.failure:
            self._record(step, Failed("rejected", proposal.failure))
        elif known is not None:
            self._record(step, known, reused=True)
        else:
            alike = self._alike.setdefault(proposal.candidate.digest, [])
            alike.append(step)
            if alike == [step]:
                self._evaluate(step, proposal.candidate)

    def _evaluate(self, step: _Step, candidate: Candidate) -> None:
        """Has a candidate evaluated, beside its parent where that is correct."""
        parent = self._study.parent(step.ask)
        passed = parent and isinstance(parent.evaluation, Passed)
        beside = parent.candidate if parent and passed else None
        again = bool(step.evaluations)
        self._workers.begin(step, lambda: self._evaluator.evaluate(candidate, beside, again=again))

    def _evaluated(self, step: _Step, evaluation: Evaluation) -> None:
        assert step.proposal
        candidate = step.proposal.candidate
        first = not step.evaluations
        step.evaluations += (evaluation,)
        if first and self._study.is_to_be_rechecked(evaluation) and not self._error:
            self._listener.rechecking(step.number, step.proposal)
            self._evaluate(step, candidate)
            return
        _, *others = self._alike.pop(candidate.digest)
        self._record(step, worst_of(step.evaluations))
        for other in others:
            self._judge(other)

    def _record(self, step: _Step, evaluation: Evaluation, *, reused: bool = False) -> None:
        """Makes a recorded step of it."""
        assert step.proposal
        best = self._study.best
        node = self._study.record(
            step.ask,
            step.proposal,
            evaluation,
            propose_s=step.propose_s,
            reused=reused,
            repeats=() if len(step.evaluations) < 2 else step.evaluations,
        )
        self._under_way.remove(step)
        if self._study.best is node:
            self._winner.lead(node)
        self._listener.recorded(node, best=self._study.best is not best)

    def _confirm(self) -> None:
        if self._run.config.confirm:
            most = self._run.config.confirm_top
            self._winner.confirm(self._evaluator, most, self._listener.confirming)


def _advance(
    dialogue: Dialogue, replies: Sequence[Reply | None], client: Client | None
) -> tuple[Prompt, Reply] | Proposal:
    """Takes a dialogue to its next reply, or to its end."""
    try:
        for reply in replies:
            prompt = next(dialogue) if reply is None else dialogue.send(reply)
    except StopIteration as end:
        proposal: Proposal = end.value
        return proposal
    assert client
    try:
        return prompt, client.ask(prompt)
    except ContextTooLongError:
        return prompt, Reply("", client.model, "too_long")
