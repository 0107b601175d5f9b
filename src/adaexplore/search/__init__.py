"""Where to grow the tree next, and what that step is shown.

One step of a search, everything else left out:

    rng = step_rng(seed, step)
    selection = policy.select(tree, rng)
    shown = shown_to(tree, selection, settings, rng)
    ...                                                          # propose, evaluate
    reward = reward_function(settings.reward)(evaluation)
    tree.add(step, selection.node_id, selection.step_kind, reward, rank(evaluation))
    policy.record(tree, step, SourceTraits(candidate))

Replaying `tree.add` and `policy.record` over the recorded nodes gives back tree and policy, so
nothing here is stored.
"""

from __future__ import annotations

from adaexplore.search.policies import POLICIES
from adaexplore.search.policy import Policy, Selection
from adaexplore.search.pool import large_pool, shown_to, small_window
from adaexplore.search.reward import reward_function
from adaexplore.search.rng import step_rng
from adaexplore.search.traits import SourceTraits, Traits
from adaexplore.search.tree import Tree

__all__ = [
    "POLICIES",
    "Policy",
    "Selection",
    "SourceTraits",
    "Traits",
    "Tree",
    "large_pool",
    "reward_function",
    "shown_to",
    "small_window",
    "step_rng",
]
