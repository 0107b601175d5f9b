"""UCT with an expand action (arXiv 2604.16625)."""

from __future__ import annotations

import math
import random

from adaexplore.core.node import ROOT_ID, StepKind
from adaexplore.core.protocols.policy import Policy, Selection
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Tree, Vertex
from adaexplore.search.policy import step_kind


def child_score(value: float, visits: int, parent_visits: int, c: float) -> float:
    """Return `Q + c * sqrt(ln N_parent / n_child)`; infinite for a child without visits."""
    if visits == 0:
        return math.inf
    return value + c * math.sqrt(math.log(parent_visits) / visits)


def expand_score(best_value: float, children: int, visits: int, c: float, ratio: float) -> float:
    """Return `max_child Q + c * ratio * sqrt(ln N) / k` for `k` children and `N` visits.

    Infinite for a leaf, which always expands.
    """
    if children == 0:
        return math.inf
    return best_value + c * ratio * math.sqrt(math.log(visits)) / children


class Uct(Policy):
    """The published policy (arXiv 2604.16625).

    From the root it descends to the child with the best `child_score` (the oldest of equals) until
    the `expand_score` of a node is strictly greater, or the node has no recorded child. Parameters
    are those of `Config`: `alpha` weighs the maximum against the mean in a node's value, `c` the
    exploration, `expand_ratio` the expand action; `small_limit` bounds a node's small children;
    `reward` names the reward behind the values.
    """

    def __init__(self, settings: Config) -> None:
        self._settings = settings

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the node to expand and the kind of step; draw from `rng` at most once."""
        vertex = tree[ROOT_ID]
        while (child := self._preferred_child(tree, vertex)) is not None:
            vertex = child
        return Selection(vertex.id, self._step_kind(vertex, rng))

    def _preferred_child(self, tree: Tree, vertex: Vertex) -> Vertex | None:
        """Return the child to descend to, None if `vertex` itself is to be expanded."""
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
        if vertex.id == ROOT_ID and settings.step_kinds == "small":
            return best_child  # from the root, a step can only be large
        return None if self._expands(vertex, best_value, best_score) else best_child

    def _expands(self, vertex: Vertex, best_value: float, best_score: float) -> bool:
        """Return true if `vertex` itself is expanded instead of a node below it."""
        settings = self._settings
        score = expand_score(
            best_value, vertex.width, vertex.visits, settings.c, settings.expand_ratio
        )
        return score > best_score

    def _step_kind(self, vertex: Vertex, rng: random.Random) -> StepKind:
        if vertex.small_children >= self._settings.small_limit:
            return "large"
        return step_kind(vertex, self._settings, rng)
