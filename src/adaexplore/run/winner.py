"""The end of a search: which kernel is the best, certain enough to be claimed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from adaexplore.core.evaluation import Evaluation
from adaexplore.core.evaluator import Evaluator
from adaexplore.core.node import Node, best_correct
from adaexplore.run.study import Study
from adaexplore.search import next_to_confirm
from adaexplore.store import Confirmation, Store


class Winner:
    """Keeps best.py at `path` the best kernel that a study knows."""

    def __init__(self, study: Study, store: Store, path: Path) -> None:
        self._study = study
        self._store = store
        self._path = path

    def write(self) -> None:
        """Writes the best confirmed kernel, or the best found where that one is not decided yet."""
        best, confirmed = self._study.best, self._confirmed()
        if best is None:
            return
        winner = best_correct(confirmed) if best.id in confirmed else None
        self.lead(best if winner is None else self._study.nodes[winner - 1])

    def lead(self, node: Node) -> None:
        """Has this step's kernel in the lead; the file is whole at every moment."""
        draft = self._path.with_suffix(".py.new")
        draft.write_text(node.candidate.source, encoding="utf-8")
        draft.replace(self._path)

    def confirm(self, evaluator: Evaluator, most: int, tell: Callable[[Node], None]) -> None:
        """Measures the best once more, each in a fresh process, until the winner is certain.

        At most so many as `most`; `tell` is told of each before. Raises as `Evaluator.evaluate`.
        """
        nodes = self._study.nodes
        searched = {node.id: node.evaluation for node in nodes if not node.reused}
        confirmed = self._confirmed()
        while (chosen := next_to_confirm(searched, confirmed, most)) is not None:
            node = nodes[chosen - 1]
            tell(node)
            confirmed[chosen] = evaluator.evaluate(node.candidate, again=True)
            self._store.confirm(Confirmation(chosen, confirmed[chosen], time.time()))
        self.write()

    def _confirmed(self) -> dict[int, Evaluation]:
        return {kept.node_id: kept.evaluation for kept in self._store.confirmations()}
