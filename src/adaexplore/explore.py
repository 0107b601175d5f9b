"""The loop: select, propose, evaluate, record."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Protocol

from adaexplore.evaluate.base import Evaluator
from adaexplore.evaluation import Evaluation, Failed, Passed, rank
from adaexplore.node import Node, StepKind
from adaexplore.proposal import Proposal
from adaexplore.propose.base import Context, Proposer
from adaexplore.search import (
    Tree,
    UctPolicy,
    large_pool,
    reward_function,
    small_window,
    step_rng,
)
from adaexplore.store import Confirmation, Store


class Listener(Protocol):
    """Told what a search is doing, as it does it."""

    def prepared(self, facts: dict[str, Any]) -> None:
        """What is now known about the reference."""

    def proposing(self, step: int, step_kind: StepKind) -> None:
        """A step has begun."""

    def evaluating(self, step: int, proposal: Proposal) -> None:
        """The step's candidate goes to the evaluator."""

    def recorded(self, node: Node, *, best: bool) -> None:
        """The step is in the store; `best` if nothing before it was better."""

    def confirming(self, node: Node) -> None:
        """The winner is measured again."""


class Search:
    """One problem's search over a store, new or resumed.

    All state is in the store: the tree is rebuilt from its nodes, and every step draws from a
    generator of its own, so a resumed search continues as if it had never stopped.
    """

    def __init__(
        self,
        store: Store,
        proposer: Proposer,
        evaluator: Evaluator,
        listener: Listener,
        best_path: Path,
    ) -> None:
        self._store = store
        self._run = store.run()
        self._proposer = proposer
        self._evaluator = evaluator
        self._listener = listener
        self._best_path = best_path
        self._policy = UctPolicy(self._run.settings)
        self._reward = reward_function(self._run.settings.reward)
        self._tree = Tree()
        self._nodes: list[Node] = []
        self._by_digest: dict[str, Evaluation] = {}
        self._best: Node | None = None
        for node in store.nodes():
            self._take(node)

    def run(self) -> None:
        """Goes on until the planned number of steps is recorded, then confirms the winner.

        Raises `BadProblemError` before the first step for a reference that cannot be verified
        against, `InfrastructureError` when the machinery is gone, and `BadInputError` when the
        store is full; what was recorded stays.
        """
        facts = self._evaluator.prepare()
        self._store.set_reference(facts)
        self._listener.prepared(facts)
        if self._best is not None:  # a kill may have come between recording it and writing it
            self._write_best()
        for step in range(len(self._nodes) + 1, self._run.steps + 1):
            node = self._step(step)
            self._store.record(node)
            best = self._take(node)
            if best:
                self._write_best()
            self._listener.recorded(node, best=best)
        if self._run.settings.confirm:
            self._confirm()

    def _step(self, step: int) -> Node:
        started_at = time.time()
        rng = step_rng(self._run.seed, step)
        settings = self._run.settings
        place = self._policy.select(self._tree, rng)
        self._listener.proposing(step, place.step_kind)
        pool: tuple[Node, ...] = ()
        window: tuple[Node, ...] = ()
        if place.step_kind == "large":
            pool = self._shown(large_pool(self._tree, place.node_id, settings, rng))
        else:
            window = self._shown(small_window(self._tree, place.node_id, settings))
        context = Context(
            problem=self._run.problem,
            step_kind=place.step_kind,
            seed=rng.randrange(2**31),
            window=window,
            pool=pool,
            history=tuple(self._nodes),
        )
        clock = time.monotonic()
        proposal = self._proposer.propose(context)
        propose_s = time.monotonic() - clock
        self._listener.evaluating(step, proposal)
        evaluation, reused = self._evaluate(proposal, place.node_id)
        return Node(
            id=step,
            parent_id=place.node_id,
            step_kind=place.step_kind,
            proposal=proposal,
            evaluation=evaluation,
            started_at=started_at,
            propose_s=propose_s,
            reused=reused,
        )

    def _shown(self, ids: list[int]) -> tuple[Node, ...]:
        return tuple(self._nodes[i - 1] for i in ids)

    def _evaluate(self, proposal: Proposal, parent_id: int) -> tuple[Evaluation, bool]:
        """The evaluation, and whether it was taken over from an identical candidate."""
        if proposal.failure:
            return Failed("rejected", proposal.failure), False
        known = self._by_digest.get(proposal.candidate.digest)
        if known is not None:
            return known, True
        parent = self._nodes[parent_id - 1] if parent_id else None  # 0 is the empty root
        passed = parent and isinstance(parent.evaluation, Passed)
        beside = parent.candidate if parent and passed else None
        return self._evaluator.evaluate(proposal.candidate, beside), False

    def _take(self, node: Node) -> bool:
        """Adds a recorded node to the search's state; true if it is the best so far."""
        evaluation = node.evaluation
        self._nodes.append(node)
        self._tree.add(
            node.id, node.parent_id, node.step_kind, self._reward(evaluation), rank(evaluation)
        )
        if evaluation.status != "infra_error" and not node.proposal.failure:
            self._by_digest.setdefault(node.candidate.digest, evaluation)
        if not isinstance(evaluation, Passed):
            return False
        if self._best is None or rank(evaluation) > rank(self._best.evaluation):
            self._best = node
            return True
        return False

    def _write_best(self) -> None:
        """Replaces best.py in one move, so that it is whole at every moment."""
        assert self._best is not None
        draft = self._best_path.with_suffix(".py.new")
        draft.write_text(self._best.candidate.source, encoding="utf-8")
        draft.replace(self._best_path)

    def _confirm(self) -> None:
        """Measures the winner once more, in a fresh process, and keeps what comes of it."""
        if self._best is None or not _is_measured(self._best):
            return
        kept = self._store.confirmation()
        if kept is not None and kept.node_id == self._best.id:
            return
        self._listener.confirming(self._best)
        evaluation = self._evaluator.evaluate(self._best.candidate)
        self._store.confirm(Confirmation(self._best.id, evaluation, time.time()))


def _is_measured(node: Node) -> bool:
    return isinstance(node.evaluation, Passed) and node.evaluation.measured is not None
