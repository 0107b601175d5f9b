"""A policy of one's own: change the fastest kernel, and start again at every third step."""

import random
from pathlib import Path
from typing import Any

import adaexplore
from adaexplore import Policy, Selection
from adaexplore.search import ROOT_ID, Traits, Tree


class Greedy(Policy):
    def select(self, tree: Tree, rng: random.Random) -> Selection:
        kernels = tree.best_kernels.values()
        if not kernels or len(tree) % 3 == 2:
            return Selection(ROOT_ID, "large")
        return Selection(max(kernels, key=lambda node: tree[node].log_speed), "small")

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Remember nothing: the tree has all that `select` needs."""


def main(**options: Any) -> adaexplore.Run:
    problem = Path(__file__).parent / "problems/softmax.py"
    run = adaexplore.optimize(problem, **{"policy": Greedy(), "steps": 6, **options})
    print([(node.id, node.parent_id, node.step_kind) for node in run.nodes])
    return run


if __name__ == "__main__":
    main()
