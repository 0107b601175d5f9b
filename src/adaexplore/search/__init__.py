"""Where to grow the tree next, and what that step is shown.

One step of a search, everything else left out:

    rng = step_rng(seed, step)
    selection = policy.select(tree, rng)
    shown = context_ids(tree, selection, settings, rng)
    ...                                                          # propose, evaluate
    believed = shrunk(evaluation, tree[selection.node_id].log_speed)
    reward = reward_function(settings.reward)(believed)
    tree.add(step, selection.node_id, selection.step_kind, reward, rank(believed))
    policy.record(tree, step, traits_of(node))

Replaying `tree.add` and `policy.record` over the recorded nodes gives back tree and policy, so
nothing here is stored.
"""

from __future__ import annotations

from adaexplore.core.policy import Policy, Selection, Traits
from adaexplore.core.tree import Tree
from adaexplore.search.policies import POLICIES
from adaexplore.search.pool import context_ids, large_pool, small_window
from adaexplore.search.reward import reward_function
from adaexplore.search.rng import step_rng
from adaexplore.search.traits import CompiledTraits, SourceTraits, traits_of
from adaexplore.search.winners_curse import needs_remeasure, next_to_confirm, shrunk, worst_of

__all__ = [
    "POLICIES",
    "CompiledTraits",
    "Policy",
    "Selection",
    "SourceTraits",
    "Traits",
    "Tree",
    "context_ids",
    "large_pool",
    "needs_remeasure",
    "next_to_confirm",
    "reward_function",
    "shrunk",
    "small_window",
    "step_rng",
    "traits_of",
    "worst_of",
]
