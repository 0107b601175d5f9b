"""Selection by UCT with an expand action (arXiv 2604.16625)."""

from __future__ import annotations

import math
import random

from adaexplore.node import ROOT_ID, StepKind
from adaexplore.search.policy import Selection
from adaexplore.search.tree import Tree, Vertex
from adaexplore.settings import Settings


def child_score(value: float, visits: int, parent_visits: int, c: float) -> float:
    """`Q + c * sqrt(ln N_parent / n_child)`; infinite for a child without visits."""
    if visits == 0:
        return math.inf
    return value + c * math.sqrt(math.log(parent_visits) / visits)


def expand_score(best_value: float, children: int, visits: int, c: float, ratio: float) -> float:
    """`max_child Q + c * ratio * sqrt(ln N) / k` of a node with `k` children and `N` visits.

    Infinite for a leaf, which always expands.
    """
    if children == 0:
        return math.inf
    return best_value + c * ratio * math.sqrt(math.log(visits)) / children


class UctPolicy:
    """The published policy.

    From the root it descends to the child with the best score (the oldest of equals) until a node's
    expand score is strictly greater than its best child's, or the node is a leaf.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Node to expand and step kind; draws from `rng` at most once."""
        vertex = tree[ROOT_ID]
        while (child := self._preferred_child(tree, vertex)) is not None:
            vertex = child
        return Selection(vertex.id, self._step_kind(vertex, rng))

    def _preferred_child(self, tree: Tree, vertex: Vertex) -> Vertex | None:
        """The child to descend to, or None where `vertex` itself is to be expanded."""
        settings = self._settings
        best_score = best_value = -math.inf
        best_child: Vertex | None = None
        for child_id in vertex.children:
            child = tree[child_id]
            value = child.value(settings.alpha)
            score = child_score(value, child.visits, vertex.visits, settings.c)
            best_value = max(best_value, value)
            if score > best_score:
                best_score, best_child = score, child
        expand = expand_score(
            best_value, len(vertex.children), vertex.visits, settings.c, settings.expand_ratio
        )
        return None if expand > best_score else best_child

    def _step_kind(self, vertex: Vertex, rng: random.Random) -> StepKind:
        if vertex.id == ROOT_ID or vertex.small_children >= self._settings.small_limit:
            return "large"
        return "large" if rng.random() < self._settings.p_large else "small"
