"""The end of a search: which kernel is the best, certain enough to be claimed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from adaexplore.core.evaluation import Evaluation
from adaexplore.core.leader import leader_of
from adaexplore.core.node import Node
from adaexplore.core.protocols.evaluator import Evaluator
from adaexplore.core.protocols.listener import Confirming
from adaexplore.run.study import Study
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
    """Write the kernel of the leading step; the file is complete at every moment."""
    leader = leader_of({node.id: node.evaluation for node in nodes}, confirmed)
    if leader:
        draft = path.with_suffix(".py.new")
        draft.write_text(nodes[leader.node_id - 1].candidate.source, encoding="utf-8")
        draft.replace(path)
