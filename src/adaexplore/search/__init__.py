"""Where to grow the tree next, and what that step is shown.

One step of a search, everything else left out:

    rng = step_rng(seed, step)
    selection = UctPolicy(settings).select(tree, rng)
    shown = large_pool(tree, selection.node_id, settings, rng)    # for a large step
    shown = small_window(tree, selection.node_id, settings)       # for a small step
    ...                                                           # propose, evaluate, record
    reward = reward_function(settings.reward)(evaluation)
    tree.add(step, selection.node_id, selection.step_kind, reward, rank(evaluation))

Replaying `tree.add` over the recorded nodes gives back the tree, so nothing here is stored.
"""

from __future__ import annotations

from adaexplore.search.policy import Policy, Selection
from adaexplore.search.pool import large_pool, small_window
from adaexplore.search.reward import reward_function
from adaexplore.search.rng import step_rng
from adaexplore.search.tree import Tree
from adaexplore.search.uct import UctPolicy

__all__ = [
    "Policy",
    "Selection",
    "Tree",
    "UctPolicy",
    "large_pool",
    "reward_function",
    "small_window",
    "step_rng",
]
