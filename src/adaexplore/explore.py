"""The loop: select, propose, evaluate, record."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adaexplore.ask import Ask
from adaexplore.evaluate.base import Evaluator
from adaexplore.evaluation import Evaluation, Failed, Passed
from adaexplore.llm.base import (
    BudgetSpentError,
    Client,
    ContextTooLongError,
    ModelOutageError,
    Prompt,
    Reply,
)
from adaexplore.node import Node, StepKind
from adaexplore.proposal import Proposal
from adaexplore.propose.base import Proposer
from adaexplore.store import Confirmation, Store
from adaexplore.study import Study

_FIRST_WAIT_S, _LONGEST_WAIT_S = 5.0, 300.0


class Listener:
    """Told what a search is doing, as it does it; does nothing with it unless it is made to."""

    def prepared(self, facts: dict[str, Any]) -> None:
        """What is now known about the reference."""

    def proposing(self, step: int, step_kind: StepKind) -> None:
        """A step has begun."""

    def waiting(self, reason: str, wait_s: float) -> None:
        """A model is out of reach; it is asked again after so many seconds."""

    def evaluating(self, step: int, proposal: Proposal) -> None:
        """The step's candidate goes to the evaluator."""

    def recorded(self, node: Node, *, best: bool) -> None:
        """The step is in the store; `best` if nothing before it was better."""

    def stopping(self, reason: str) -> None:
        """The budget is spent: no further step."""

    def confirming(self, node: Node) -> None:
        """The winner is measured again."""


class Search:
    """One problem's search over a store, new or resumed.

    All state is in the store: the tree is rebuilt from its nodes, every step draws from a generator
    of its own, and every model's reply is kept before it is used, so a resumed search continues as
    if it had never stopped. `proposers` and the `clients` that answer for those that ask a model go
    by name; `choose` says who is asked next, and `spent` why there shall be no next step, if so.
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
    ) -> None:
        self._store = store
        self._run = store.run()
        self._evaluator = evaluator
        self._listener = listener
        self._best_path = best_path
        self._clients = clients or {}
        first = next(iter(proposers))
        self._choose = choose or (lambda _: first)
        self._spent = spent
        self._sleep = sleep
        self._study = Study(store, proposers)

    def run(self) -> None:
        """Goes on until the planned steps are recorded or the budget is spent; then confirms.

        Raises `BadProblemError` before the first step for a reference that cannot be verified
        against, `InfrastructureError` when the machinery is gone, and `BadInputError` when the
        store is full or a model refuses to be asked; what was recorded stays.
        """
        facts = self._evaluator.prepare()
        self._store.set_reference(facts)
        self._listener.prepared(facts)
        if self._study.best is not None:  # a kill may have come between recording and writing it
            self._write_best(self._study.best)
        try:
            while len(self._study.nodes) < self._run.steps:
                reason = self._spent()
                if reason:
                    raise BudgetSpentError(reason)
                self._step()
        except BudgetSpentError as error:
            self._listener.stopping(str(error))
        if self._run.settings.confirm:
            self._confirm()

    def finish_queued(self) -> None:
        """Makes steps of the proposals that wait for their evaluation, and asks nobody.

        Confirms the winner once all planned steps are recorded. Raises as `run` does.
        """
        self._store.set_reference(self._evaluator.prepare())
        for ask, proposal in self._study.queued():
            self._finish(ask, proposal, 0.0)
        if self._run.settings.confirm and len(self._study.nodes) >= self._run.steps:
            self._confirm()

    def _step(self) -> None:
        ask = self._next_ask()
        self._listener.proposing(len(self._study.nodes) + 1, ask.step_kind)
        clock = time.monotonic()
        proposal = self._talk(ask)
        self._finish(ask, proposal, time.monotonic() - clock)

    def _finish(self, ask: Ask, proposal: Proposal, propose_s: float) -> None:
        """Evaluates a proposal and records the step."""
        self._listener.evaluating(len(self._study.nodes) + 1, proposal)
        best = self._study.best
        evaluation, reused = self._evaluate(ask, proposal)
        node = self._study.record(ask, proposal, evaluation, propose_s=propose_s, reused=reused)
        if self._study.best is node:
            self._write_best(node)
        self._listener.recorded(node, best=self._study.best is not best)

    def _next_ask(self) -> Ask:
        """The one that a kill left under way, or a new one."""
        under_way = self._store.asks("open", "queued")
        return under_way[0].ask if under_way else self._study.ask(self._choose(self._study))

    def _talk(self, ask: Ask) -> Proposal:
        """Has the ask's model answer until there is a proposal."""
        number, turn = self._study.turn(ask.id)
        while isinstance(turn, Prompt):
            reply = self._reply(self._clients[ask.proposer], turn)
            turn = self._study.tell(ask.id, number, reply)
            number += 1
        return turn

    def _reply(self, client: Client, prompt: Prompt) -> Reply:
        """A model's reply; waits for one that is out of reach, for as long as patience lasts."""
        wait_s, patience_s = _FIRST_WAIT_S, self._run.settings.outage_patience_s
        while True:
            try:
                return client.ask(prompt)
            except ContextTooLongError:
                return Reply("", client.model, "too_long")
            except ModelOutageError as error:
                if patience_s <= 0:
                    raise
                self._listener.waiting(str(error), wait_s)
                self._sleep(wait_s)
                patience_s -= wait_s
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _evaluate(self, ask: Ask, proposal: Proposal) -> tuple[Evaluation, bool]:
        """The evaluation, and whether it was taken over from an identical candidate."""
        if proposal.failure:
            return Failed("rejected", proposal.failure), False
        known = self._study.known(proposal)
        if known is not None:
            return known, True
        parent = self._study.parent(ask)
        passed = parent and isinstance(parent.evaluation, Passed)
        beside = parent.candidate if parent and passed else None
        return self._evaluator.evaluate(proposal.candidate, beside), False

    def _write_best(self, node: Node) -> None:
        """Replaces best.py in one move, so that it is whole at every moment."""
        draft = self._best_path.with_suffix(".py.new")
        draft.write_text(node.candidate.source, encoding="utf-8")
        draft.replace(self._best_path)

    def _confirm(self) -> None:
        """Measures the winner once more, in a fresh process, and keeps what comes of it."""
        best = self._study.best
        if best is None or not _is_measured(best):
            return
        kept = self._store.confirmation()
        if kept is not None and kept.node_id == best.id:
            return
        self._listener.confirming(best)
        evaluation = self._evaluator.evaluate(best.candidate)
        self._store.confirm(Confirmation(best.id, evaluation, time.time()))


def _is_measured(node: Node) -> bool:
    return isinstance(node.evaluation, Passed) and node.evaluation.measured is not None
