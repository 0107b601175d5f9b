"""The loop: select, propose, evaluate, record; one coroutine a step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from adaexplore.core.ask import Ask, AskRecord
from adaexplore.core.node import START
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import (
    BudgetSpentError,
    ModelClient,
    Reply,
)
from adaexplore.core.protocols.evaluator import Evaluator, TellsNews
from adaexplore.core.protocols.listener import (
    Evaluating,
    Event,
    Notice,
    Prepared,
    Recorded,
    Remeasuring,
    StepBegun,
    Stopping,
    Waiting,
)
from adaexplore.core.protocols.policy import Policy
from adaexplore.core.protocols.proposer import Proposer
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Evaluation, Failed, Passed
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.llm.outage import OutageTolerantClient
from adaexplore.propose.tuner.proposer import ORIGIN as TUNER
from adaexplore.propose.tuner.proposer import Tuner
from adaexplore.propose.tuner.space import space_of
from adaexplore.run.asks.ledger import Ledger
from adaexplore.run.outcome.winner import WinnerFile
from adaexplore.run.starts import Starts, generations, start_asks, starts_of
from adaexplore.run.variants import variant_asks
from adaexplore.run.workers import Landed, Script, Work, Workers, advance, next_reply
from adaexplore.search import worst_of
from adaexplore.search.headroom import stop_reason
from adaexplore.store import Store


class Search:
    """One problem's search over a store, new or resumed.

    All state is in the store: the tree is rebuilt from its nodes, every step draws from a generator
    of its own, and every reply of a model is kept before it is used. A resumed search continues as
    if it had never stopped. `proposers` and the `clients` of the proposers that ask a model are
    keyed by name; `choose` names the proposer of the next step, and `spent` returns the reason to
    begin no further step, if there is one. `make_policy` replaces the policy of the settings.

    `run`, `tune` and `finish_queued` are generators of events; nothing happens between two events
    but for the work in threads. `parallel` steps are in flight at once: model calls and evaluations
    run in threads, and the thread that iterates does everything else. With more than one step in
    flight, the tree depends on the order in which steps end, and several threads use `proposers`,
    `clients` and `evaluator`.
    """

    def __init__(
        self,
        store: Store,
        proposers: Mapping[str, Proposer],
        evaluator: Evaluator,
        best_path: Path,
        *,
        clients: Mapping[str, ModelClient] | None = None,
        choose: Callable[[Ledger], str] | None = None,
        spent: Callable[[], str | None] = lambda: None,
        sleep: Callable[[float], None] = time.sleep,
        parallel: int = 1,
        make_policy: Callable[[Config], Policy] | None = None,
    ) -> None:
        self._store = store
        self._run = store.run()
        self._evaluator = evaluator
        self._choose = choose or (lambda _: next(iter(proposers)))
        self._spent = spent
        self._starts = starts_of(self._run)
        own: dict[str, Proposer] = {TUNER: Tuner(), START: Starts(self._starts)}
        self._ledger = Ledger(store, own | dict(proposers), make_policy=make_policy)
        self._winner = WinnerFile(self._ledger, store, best_path, sleep)
        self._parallel = parallel
        if isinstance(evaluator, TellsNews):
            evaluator.listen(self._notice)
        self._workers: Workers[_Step | None] = Workers()
        self._in_flight: list[_Step] = []
        self._judging: dict[str, threading.Event] = {}  # by candidate, set once that is recorded
        self._outlined: dict[int, threading.Event] = {}  # by ask, set once it has named outlines
        self._stopped = ""  # the reason to begin no further step
        self._error: Exception | None = None
        patience_s = self._run.config.outage_patience_s
        self._clients = {
            name: OutageTolerantClient(client, patience_s, self._waiting, sleep=sleep)
            for name, client in (clients or {}).items()
        }

    def run(self, until: int | None = None) -> Generator[Event, None, str]:
        """Search until the planned steps are recorded or there is a reason to stop; then confirm.

        Answers that are there by then were paid for: each is judged, whatever the reason to stop.

        With `until`, pause once that number of steps is recorded, and confirm nothing. Returns the
        reason to stop, empty where there was none.

        Raises `BadProblemError` before the first step for a reference that cannot be verified
        against, `InfrastructureError` when the machinery is gone, and `BadInputError` when the
        store is full or a model refuses to be asked; recorded steps stay. No new step begins then,
        and the steps in flight are waited for and kept. Ctrl-C waits for nothing.
        """
        facts = yield from self._prepare()
        steps = min(until or self._run.steps, self._run.steps)
        yield from self._judge_starts()
        yield from self._carry_out(self._planned(steps, facts))
        reason = self._stopped
        if reason:
            yield from self._judge_answered()
        if steps == self._run.steps or reason:
            yield from self._tune(self._run.config.tune)
            yield from self._confirm()
        return reason

    def start(self) -> Generator[Event]:
        """Judge the kernels that the search starts from; raises as `run`."""
        yield from self._prepare()
        yield from self._judge_starts()

    def tune(self, variants: int) -> Generator[Event]:
        """Make `variants` variants of the best kernel in all, then confirm; raises as `run`."""
        yield from self._prepare()
        yield from self._tune(variants)
        yield from self._confirm()

    def finish(self) -> Generator[Event]:
        """Judge the answers that are there, then tune and confirm; raises as `run`."""
        yield from self._prepare()
        yield from self._judge_answered()
        yield from self._tune(self._run.config.tune)
        yield from self._confirm()

    def finish_queued(self) -> Generator[Event]:
        """Evaluate and record the proposals that wait for it, and ask nobody.

        Confirms the winner once all planned steps are recorded. Raises as `run` does.
        """
        self._store.set_reference(self._evaluator.prepare())
        self._winner.write()  # a kill may have come between recording and writing it
        yield from self._carry_out(iter(self._store.asks("queued")))
        if self._ledger.searched >= self._run.steps:
            yield from self._confirm()

    def _prepare(self) -> Generator[Event, None, ReferenceFacts]:
        facts = self._evaluator.prepare()
        self._store.set_reference(facts)
        yield Prepared(facts)
        self._winner.write()  # a kill may have come between recording and writing it
        self._ledger.expire_late()
        return facts

    def _judge_starts(self) -> Generator[Event]:
        """Make nodes of the starting kernels, parents before their children."""
        for generation in generations(self._starts):
            yield from self._carry_out(self._starting(generation))

    def _starting(self, numbers: Sequence[int]) -> Iterator[AskRecord | Event]:
        """Yield the asks of starting kernels: those that a kill left open, and new ones."""
        asks = start_asks(self._ledger, self._store, self._starts, numbers)
        while not (reason := self._spent()) and (record := next(asks, None)):
            yield record
        if reason:
            yield from self._stop(reason)

    def _planned(self, steps: int, facts: ReferenceFacts) -> Iterator[AskRecord | Event]:
        """Yield the asks that a kill left open, then new ones, until `steps` steps are planned."""
        left = iter(self._store.asks("open", "queued"))
        while self._ledger.searched + self._searching < steps:
            reason = self._spent() or stop_reason(self._ledger.nodes, facts, self._run.config)
            if reason:
                yield from self._stop(reason)
                return
            yield next(left, None) or AskRecord(
                self._ledger.ask(self._choose(self._ledger)), "open"
            )

    def _judge_answered(self) -> Generator[Event]:
        """Evaluate and record every proposal that needs no further answer."""
        self._stopped = ""
        yield from self._carry_out(iter(self._answered()))

    def _answered(self) -> list[AskRecord]:
        """Return the asks that wait for an evaluation alone."""
        left = self._store.asks("open", "queued")
        return [
            record for record in left if record.proposal or self._ledger.is_answered(record.ask)
        ]

    @property
    def _searching(self) -> int:
        """The number of planned steps in flight; variants are not planned."""
        return sum(step.ask.is_planned for step in self._in_flight)

    def _tune(self, variants: int) -> Generator[Event]:
        """Vary the numbers of the best kernel, which asks no model and spends no money."""
        base = self._ledger.to_tune
        if not variants or base is None or self._spent():
            return
        space = space_of(base.candidate, self._run.problem)
        if space.size < 2:
            yield Stopping(f"step {base.id} has no numbers to tune")
            return
        self._stopped = ""
        yield from self._carry_out(
            variant_asks(self._ledger, self._store, base, min(variants, space.size - 1))
        )

    def _confirm(self) -> Generator[Event]:
        if self._run.config.confirm:
            limit = self._run.config.confirm_top
            yield from self._winner.confirm(self._evaluator, limit)

    def _carry_out(self, asks: Iterator[AskRecord | Event]) -> Generator[Event]:
        """Make steps of asks, `parallel` at once."""
        while True:
            opened = yield from self._open(asks)
            for step in opened:
                if self._error:
                    self._in_flight.remove(step)
                else:
                    yield from self._go_on(step, Landed(step))
            if opened:
                continue  # some may have ended at once
            if not self._in_flight:
                break
            landed = self._workers.next()
            if landed.key is None:
                yield landed.result
            else:
                yield from self._go_on(landed.key, landed)
        if self._error:
            raise self._error

    def _open(self, asks: Iterator[AskRecord | Event]) -> Generator[Event, None, list[_Step]]:
        """Return new steps, as many as may be in flight beside the others; asks are one batch."""
        opened: list[_Step] = []
        with self._ledger.together():
            while len(self._in_flight) < self._parallel and not (self._stopped or self._error):
                match next(asks, None):
                    case None:
                        break
                    case AskRecord() as record:
                        number = len(self._ledger.nodes) + len(self._in_flight) + 1
                        opened.append(_Step(record.ask, self._step(record, number)))
                        self._in_flight.append(opened[-1])
                    case event:
                        yield event
        return opened

    def _go_on(self, step: _Step, landed: Landed[_Step | None]) -> Iterator[Event]:
        """Give a step the result of its work; take it to its next work, or to its end."""
        try:
            work = yield from advance(step.script, landed)
            if work is not None:
                self._workers.begin(step, work)
                return
        except BudgetSpentError as error:
            yield from self._stop(str(error))
        except Exception as error:  # noqa: BLE001 - raised once the steps in flight have landed
            self._error = self._error or error
        self._in_flight.remove(step)

    def _stop(self, reason: str) -> Iterator[Event]:
        if not self._stopped:
            self._stopped = reason
            yield Stopping(reason)

    def _notice(self, line: str) -> None:
        self._workers.put(Landed(None, Notice(line)))

    def _waiting(self, reason: str, wait_s: float) -> None:
        self._workers.put(Landed(None, Waiting(reason, wait_s)))

    def _step(self, record: AskRecord, number: int) -> Script:
        """Propose, evaluate, measure a new leader again, record.

        After an error of another step, end early: the ask stays as it is in the store, for a later
        session.
        """
        ask, proposal, propose_s = record.ask, record.proposal, 0.0
        if proposal is None:
            yield StepBegun(number, ask.step_kind)
            began = time.monotonic()
            proposal = yield from self._propose(ask)
            propose_s = time.monotonic() - began
        if proposal is None or self._error:
            return
        yield Evaluating(number, proposal)
        known = yield from self._find(proposal)
        if self._error:
            return
        evaluations = (known,) if known else (yield from self._evaluate(number, ask, proposal))
        best = self._ledger.best
        node = self._ledger.record(
            ask,
            proposal,
            worst_of(evaluations),
            propose_s=propose_s,
            reused=known is not None,
            repeats=() if len(evaluations) < 2 else evaluations,
        )
        if isinstance(node.evaluation, Passed):
            self._winner.write()
        yield Recorded(node, self._ledger.best is not best)

    def _propose(self, ask: Ask) -> Generator[Work, Any, Proposal | None]:
        """Take the exchanges of an ask to a proposal, and keep every reply before it is used.

        None where another step failed meanwhile.
        """
        if not (yield from self._wait_for_outline(ask)):
            return None
        outlined = self._outlined[ask.id] = threading.Event()
        client = self._clients.get(ask.proposer)
        dialogue = self._ledger.dialogue(ask)
        replies: list[Reply | None] = [None, *self._ledger.replies(ask)]
        try:
            while True:
                match (yield partial(next_reply, dialogue, replies, client)):
                    case Proposal() as proposal:
                        return self._ledger.queue(ask, proposal)
                    case prompt, reply:
                        self._ledger.keep(ask.id, prompt, reply)
                        replies = [reply]
                if self._error:
                    return None
                if not outlined.is_set() and self._ledger.batches.has_outlines(ask):
                    outlined.set()
        finally:
            outlined.set()

    def _wait_for_outline(self, ask: Ask) -> Generator[Work, Any, bool]:
        """Wait while another step asks for the outline of this one; False if it gets none."""
        first = self._ledger.batches.waits_for(ask)
        if first in self._outlined:
            yield self._outlined[first].wait
        return not (self._error or self._ledger.batches.waits_for(ask))

    def _find(self, proposal: Proposal) -> Generator[Work, Any, Evaluation | None]:
        """Return the evaluation of an identical candidate, waiting for one that is in flight."""
        while not self._error and (judging := self._judging.get(proposal.candidate.digest)):
            yield judging.wait
        return self._ledger.cached(proposal)

    def _evaluate(
        self, number: int, ask: Ask, proposal: Proposal
    ) -> Generator[Event | Work, Any, tuple[Evaluation, ...]]:
        """Evaluate a candidate beside its parent, if that is correct; twice if it would lead."""
        if proposal.failure:
            return (Failed("rejected", proposal.failure),)
        parent = self._ledger.parent(ask)
        passed = parent and isinstance(parent.evaluation, Passed)
        paired_with = parent.candidate if parent and passed else None
        evaluate = partial(self._evaluator.evaluate, proposal.candidate, paired_with)
        recorded = self._judging[proposal.candidate.digest] = threading.Event()
        try:
            first = yield partial(evaluate, again=False)
            if self._error or not self._ledger.needs_remeasure(first):
                return (first,)
            yield Remeasuring(number, proposal)
            return (first, (yield partial(evaluate, again=True)))
        finally:
            del self._judging[proposal.candidate.digest]
            recorded.set()


@dataclass(frozen=True, eq=False, slots=True)
class _Step:
    """A step in flight."""

    ask: Ask
    script: Script
