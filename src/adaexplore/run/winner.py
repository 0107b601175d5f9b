"""The end of a search: which kernel is the best, certain enough to be claimed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from adaexplore.core.evaluation import Evaluation, Passed
from adaexplore.core.leader import leader_of
from adaexplore.core.node import Node
from adaexplore.core.protocols.evaluator import Evaluator
from adaexplore.core.protocols.listener import Confirming
from adaexplore.run.study import Study
from adaexplore.run.uses import header, with_uses
from adaexplore.search import next_to_confirm
from adaexplore.store import Confirmation, Store


class Winner:
    """Keeps the best kernel of a study in the file `path`."""

    def __init__(self, study: Study, store: Store, path: Path) -> None:
        self._study = study
        self._store = store
        self._path = path

    def write(self) -> None:
        """Write the kernel of the leading step."""
        write_best(self._study.nodes, confirmed_of(self._store), self._path)

    def confirm(self, evaluator: Evaluator, limit: int) -> Iterator[Confirming]:
        """Measure the best steps again, each in a fresh process, until the winner is certain.

        Measure at most `limit` steps. Raises as `Evaluator.evaluate` does.
        """
        confirmed = confirmed_of(self._store)
        while (node := to_confirm(self._study.nodes, confirmed, limit)) is not None:
            yield Confirming(node)
            confirmed[node.id] = evaluator.evaluate(node.candidate, again=True)
            self._store.confirm(Confirmation(node.id, confirmed[node.id], time.time()))
            self.write()
        self._try_uses(evaluator)

    def _try_uses(self, evaluator: Evaluator) -> None:
        """Try the confirmed leader as users use a module, and add that to its confirmation."""
        nodes = self._study.nodes
        leader = leader_of({n.id: n.evaluation for n in nodes}, confirmed_of(self._store))
        if leader is None or not leader.confirmed:
            return
        tried = with_uses(leader.evaluation, nodes[leader.node_id - 1].candidate, evaluator)
        if tried != leader.evaluation:
            self._store.confirm(Confirmation(leader.node_id, tried, time.time()))
            self.write()


def confirmed_of(store: Store) -> dict[int, Evaluation]:
    """Return the confirmation of every step that has one."""
    return {kept.node_id: kept.evaluation for kept in store.confirmations()}


def to_confirm(
    nodes: Sequence[Node], confirmed: Mapping[int, Evaluation], limit: int
) -> Node | None:
    """Return the step to confirm next, None once the winner is certain."""
    searched = {node.id: node.evaluation for node in nodes if not node.reused}
    chosen = next_to_confirm(searched, confirmed, limit)
    return None if chosen is None else nodes[chosen - 1]


def write_best(nodes: Sequence[Node], confirmed: Mapping[int, Evaluation], path: Path) -> None:
    """Write the kernel of the leading step; the file is complete at every moment.

    Its first lines say which uses hold, where they were tried.
    """
    leader = leader_of({node.id: node.evaluation for node in nodes}, confirmed)
    if leader:
        draft = path.with_suffix(".py.new")
        uses = leader.evaluation.uses if isinstance(leader.evaluation, Passed) else ()
        source = nodes[leader.node_id - 1].candidate.source
        draft.write_text(header(uses) + source, encoding="utf-8")
        draft.replace(path)
