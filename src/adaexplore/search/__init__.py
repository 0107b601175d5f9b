"""Tree search: which node to expand next, and what the proposer is shown.

One step of a search, without everything else:

    rng = step_rng(seed, step)
    selection = policy.select(tree, rng)
    context = context_ids(tree, selection, settings, rng)
    ...                                                          # propose, evaluate
    estimate = shrunk(evaluation, tree[selection.node_id].log_speed)
    reward = reward_function(settings.reward)(estimate)
    tree.add(step, selection.node_id, selection.step_kind, reward, rank(estimate))
    policy.record(tree, step, traits_of(node))

Replaying `tree.add` and `policy.record` over the recorded nodes rebuilds the tree and the policy.
For that reason neither of them is stored.

A policy of your own implements `Policy`: `select` returns a `Selection`, `record` is optional. This
one expands the fastest kernel found so far, and the root while there is none:

    class Greedy(Policy):
        def __init__(self, settings):
            self.settings, self.ranking = settings, Ranking()

        def record(self, tree, node_id, traits):
            self.ranking.add(tree[node_id])

        def select(self, tree, rng):
            node_id = next(iter(self.ranking.top(1)), ROOT_ID)
            return Selection(node_id, step_kind(tree[node_id], self.settings, rng))

`Tree` and `Vertex` hold the statistics to select by. `Traits` says how kernels differ: `cell` for a
MAP-Elites archive, `vector` for distances (`distance`). `core.policy` states the contract.
"""

from __future__ import annotations

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Policy, Selection, Traits
from adaexplore.core.tree import Tree, Vertex
from adaexplore.search.allocation import Arm
from adaexplore.search.headroom import is_flat
from adaexplore.search.policies import POLICIES, make_policy
from adaexplore.search.policies.ranking import Ranking
from adaexplore.search.policy import step_kind
from adaexplore.search.pool import context_ids, large_pool, small_window
from adaexplore.search.reward import reward_function
from adaexplore.search.rng import step_rng
from adaexplore.search.traits import CompiledTraits, SourceTraits, distance, traits_of
from adaexplore.search.winners_curse import (
    needs_remeasure,
    next_to_confirm,
    settled,
    shrunk,
    worst_of,
)

__all__ = [
    "POLICIES",
    "ROOT_ID",
    "Arm",
    "CompiledTraits",
    "Policy",
    "Ranking",
    "Selection",
    "SourceTraits",
    "Traits",
    "Tree",
    "Vertex",
    "context_ids",
    "distance",
    "is_flat",
    "large_pool",
    "make_policy",
    "needs_remeasure",
    "next_to_confirm",
    "reward_function",
    "settled",
    "shrunk",
    "small_window",
    "step_kind",
    "step_rng",
    "traits_of",
    "worst_of",
]
