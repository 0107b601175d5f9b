"""The end of a search: which kernel is the best, certain enough to be claimed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from adaexplore.core.leader import is_claimable, leader_of
from adaexplore.core.node import Node
from adaexplore.core.protocols.evaluator import Evaluator
from adaexplore.core.protocols.listener import Confirming, Waiting
from adaexplore.core.verdict.evaluation import Evaluation, Passed
from adaexplore.run.asks.ledger import Ledger
from adaexplore.run.outcome.uses import to_use, with_uses
from adaexplore.search import next_to_confirm, settled
from adaexplore.store import Confirmation, Store

_PAUSES_S = (2.0, 10.0)


class WinnerFile:
    """Keeps the best kernel of a search in the file `path`."""

    def __init__(
        self,
        ledger: Ledger,
        store: Store,
        path: Path,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._sleep = sleep
        self._ledger = ledger
        self._store = store
        self._path = path

    def write(self) -> None:
        """Write the kernel of the leading step."""
        write_best(self._ledger.nodes, confirmed_of(self._ledger.nodes, self._store), self._path)

    def confirm(self, evaluator: Evaluator, limit: int) -> Iterator[Confirming | Waiting]:
        """Measure the best steps again, each in a fresh process, until the winner is certain.

        Measure at most `limit` steps, and wait before a noisy measurement is repeated. Raises as
        `Evaluator.evaluate` does.
        """
        while (node := to_confirm(self._ledger.nodes, self._store, limit)) is not None:
            earlier = _confirmations(self._store).get(node.id, [])
            if earlier:
                yield from self._wait(node, earlier)
            yield Confirming(node)
            evaluation = evaluator.evaluate(node.candidate, again=True)
            self._store.confirm(Confirmation(node.id, evaluation, time.time()))
            self.write()
        self._try_uses(evaluator)

    def _try_uses(self, evaluator: Evaluator) -> None:
        """Try the confirmed leader as users use a module, and add that to its confirmation."""
        nodes = self._ledger.nodes
        confirmed = confirmed_of(nodes, self._store)
        leader = leader_of({n.id: n.evaluation for n in nodes}, confirmed)
        if leader is None or not leader.confirmed:
            return
        tried = with_uses(leader.evaluation, nodes[leader.node_id - 1].candidate, evaluator)
        if tried != leader.evaluation:
            self._store.confirm(Confirmation(leader.node_id, tried, time.time()))
            self.write()

    def _wait(self, node: Node, earlier: Sequence[Evaluation]) -> Iterator[Waiting]:
        """Give other programs time to end, where the last measurement was noisy."""
        timing = earlier[-1].measured
        if timing and timing.is_noisy:
            wait_s = _PAUSES_S[min(len(earlier), len(_PAUSES_S)) - 1]
            reason = f"the machine was too noisy to measure step {node.id}"
            yield Waiting(reason, wait_s)
            self._sleep(wait_s)


def confirmed_of(nodes: Sequence[Node], store: Store) -> dict[int, Evaluation]:
    """Return, for every step with confirmations, the one that counts."""
    return {
        node_id: settled(nodes[node_id - 1].evaluation, some)
        for node_id, some in _confirmations(store).items()
    }


def to_confirm(nodes: Sequence[Node], store: Store, limit: int) -> Node | None:
    """Return the step to confirm next, None once the winner is certain."""
    searched = {
        node.id: node.evaluation
        for node in nodes
        if not node.reused and is_claimable(node.evaluation)
    }
    chosen = next_to_confirm(searched, _confirmations(store), limit)
    return None if chosen is None else nodes[chosen - 1]


def _confirmations(store: Store) -> dict[int, list[Evaluation]]:
    """Return all confirmations of every step, in order.

    One that only adds the uses to an earlier one takes its place.
    """
    found: dict[int, list[Evaluation]] = {}
    for kept in store.confirmations():
        known = found.setdefault(kept.node_id, [])
        evaluation = kept.evaluation
        if isinstance(evaluation, Passed) and evaluation.uses:
            bare = replace(evaluation, uses=())
            if bare in known:
                known[known.index(bare)] = evaluation
                continue
        known.append(evaluation)
    return found


def write_best(nodes: Sequence[Node], confirmed: Mapping[int, Evaluation], path: Path) -> None:
    """Write the kernel of the leading step; the file is complete at every moment.

    Its first lines say which uses hold, where they were tried; a backward pass without gradients
    raises.
    """
    leader = leader_of({node.id: node.evaluation for node in nodes}, confirmed)
    if leader:
        draft = path.with_suffix(".py.new")
        uses = leader.evaluation.uses if isinstance(leader.evaluation, Passed) else ()
        source = nodes[leader.node_id - 1].candidate.source
        draft.write_text(to_use(source, uses), encoding="utf-8")
        draft.replace(path)
