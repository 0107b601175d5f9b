"""The end of a search: which kernel is the best, certain enough to be claimed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from adaexplore.core.evaluation import Evaluation
from adaexplore.core.node import Node, best_correct
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
        """Write the best confirmed kernel, or the best found while that is not confirmed."""
        winner = winner_of(self._study.nodes, self._store.confirmations())
        if winner:
            self.lead(winner[0])

    def lead(self, node: Node) -> None:
        """Write the kernel of a step; the file is complete at every moment."""
        draft = self._path.with_suffix(".py.new")
        draft.write_text(node.candidate.source, encoding="utf-8")
        draft.replace(self._path)

    def confirm(self, evaluator: Evaluator, limit: int) -> Iterator[Confirming]:
        """Measure the best steps again, each in a fresh process, until the winner is certain.

        Measure at most `limit` steps. Raises as `Evaluator.evaluate` does.
        """
        nodes = self._study.nodes
        searched = {node.id: node.evaluation for node in nodes if not node.reused}
        confirmed = self._confirmed()
        while (chosen := next_to_confirm(searched, confirmed, limit)) is not None:
            node = nodes[chosen - 1]
            yield Confirming(node)
            confirmed[chosen] = evaluator.evaluate(node.candidate, again=True)
            self._store.confirm(Confirmation(chosen, confirmed[chosen], time.time()))
        self.write()

    def _confirmed(self) -> dict[int, Evaluation]:
        return {kept.node_id: kept.evaluation for kept in self._store.confirmations()}


def winner_of(
    nodes: Sequence[Node], confirmations: Iterable[Confirmation]
) -> tuple[Node, Evaluation] | None:
    """Return the winning step and the evaluation that counts for it.

    The best confirmed step wins, or the best found while that step is not confirmed. None where no
    step is correct.
    """
    best = best_correct({node.id: node.evaluation for node in nodes})
    if best is None:
        return None
    confirmed = {kept.node_id: kept.evaluation for kept in confirmations}
    winner = best_correct(confirmed) if best in confirmed else None
    if winner is None:
        return nodes[best - 1], nodes[best - 1].evaluation
    return nodes[winner - 1], confirmed[winner]
