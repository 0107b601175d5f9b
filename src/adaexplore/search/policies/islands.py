"""Island model with a MAP-Elites archive per island."""

from __future__ import annotations

import random

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Cell, Policy, Selection, Traits
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Tree
from adaexplore.search.policies.ranking import Ranking, order
from adaexplore.search.policy import step_kind


class Islands(Policy):
    """Populations that evolve apart, each a grid that keeps the best kernel of every cell.

    After OpenEvolve (github.com/algorithmicsuperintelligence/openevolve) with its defaults, except
    that cells are `Traits.cell` in place of its complexity and diversity. Steps visit the `islands`
    in turn. The parent is drawn from the island: with probability `exploration` uniformly, with
    probability `exploitation` among its elites (members that belong to the best `archive` kernels
    of the search), else in proportion to speed. A large step is also shown the island's best and
    random other members. After every `interval` steps the best fraction `migration` of each island
    is copied to both neighbours on the ring. An island without a correct kernel takes large steps
    from the root.
    """

    def __init__(
        self,
        settings: Config,
        *,
        islands: int = 5,
        exploration: float = 0.2,
        exploitation: float = 0.7,
        archive: int = 100,
        interval: int = 50,
        migration: float = 0.1,
    ) -> None:
        self._settings = settings
        self._grids: list[dict[Cell, int]] = [{} for _ in range(islands)]
        self._exploration = exploration
        self._exploitation = exploitation
        self._archive = archive
        self._interval = interval
        self._migration = migration
        self._ranking = Ranking()
        self._home: dict[int, int] = {}
        self._cells: dict[int, Cell] = {}
        self._recorded = 0

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Place a correct kernel in its island's grid; migrate after every `interval` steps."""
        vertex = tree[node_id]
        turn = self._recorded % len(self._grids)
        self._recorded += 1
        parent_id = vertex.parent_id or ROOT_ID
        at_home = parent_id != ROOT_ID and parent_id not in self._grids[turn].values()
        island = self._home.get(parent_id, turn) if at_home else turn
        self._home[node_id] = island
        if vertex.correct:
            self._ranking.add(vertex)
            self._cells[node_id] = traits.cell
            self._place(tree, node_id, island)
        if self._recorded % self._interval == 0:
            self._migrate(tree)

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return a member of the island whose turn it is."""
        turn = (self._recorded + tree[ROOT_ID].pending) % len(self._grids)
        members = list(self._grids[turn].values())
        if not members:
            return Selection(ROOT_ID, "large", ())
        parent = self._parent(tree, members, rng)
        kind = step_kind(tree[parent], self._settings, rng)
        if kind == "small":
            return Selection(parent, kind)
        return Selection(parent, kind, self._inspirations(tree, parent, members, rng))

    def _parent(self, tree: Tree, members: list[int], rng: random.Random) -> int:
        draw = rng.random()
        if draw < self._exploration:
            return rng.choice(members)
        if draw < self._exploration + self._exploitation:
            elites = set(self._ranking.top(self._archive))
            return rng.choice([kernel for kernel in members if kernel in elites] or members)
        weights = [max(tree[kernel].speedup, 1e-3) for kernel in members]
        return rng.choices(members, weights)[0]

    def _inspirations(
        self, tree: Tree, parent: int, members: list[int], rng: random.Random
    ) -> tuple[int, ...]:
        """Return the parent, the island's best, and other members drawn at random."""
        best = min(members, key=lambda kernel: order(tree[kernel]))
        chosen = list(dict.fromkeys((parent, best)))[: self._settings.pool_size]
        others = [kernel for kernel in members if kernel not in chosen]
        free = self._settings.pool_size - len(chosen)
        return (*chosen, *rng.sample(others, min(free, len(others))))

    def _place(self, tree: Tree, kernel: int, island: int) -> None:
        grid, cell = self._grids[island], self._cells[kernel]
        if cell not in grid or tree[kernel].rank > tree[grid[cell]].rank:
            grid[cell] = kernel

    def _migrate(self, tree: Tree) -> None:
        leaving = []
        for grid in self._grids:
            ranked = sorted(grid.values(), key=lambda kernel: order(tree[kernel]))
            leaving.append(ranked[: max(1, int(len(ranked) * self._migration))])
        for island, kernels in enumerate(leaving):
            for neighbour in (island - 1, island + 1):
                for kernel in kernels:
                    self._place(tree, kernel, neighbour % len(self._grids))
