"""Context of a step: representative kernels for a large step, the recent path for a small one."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Selection, Traits
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Tree
from adaexplore.search.traits import distance

_INVERSE_TEMPERATURE = 4.0


def context_ids(
    tree: Tree, selection: Selection, settings: Config, rng: random.Random
) -> tuple[int, ...]:
    """Return the ids of the kernels that a selected step is shown.

    For a small step its path (`small_window`); for a large step the pool that the policy chose, or
    else `large_pool`.
    """
    if selection.step_kind == "small":
        return tuple(small_window(tree, selection.node_id, settings))
    if selection.pool is not None:
        return selection.pool
    return tuple(large_pool(tree, selection.node_id, settings, rng))


def large_pool(tree: Tree, node_id: int, settings: Config, rng: random.Random) -> list[int]:
    """Return the ids shown to a large step from `node_id`; at most `settings.pool_size`.

    For every large step on the path from the root to `node_id` (included), the pool holds the best
    correct kernel of its small-step component, topmost first. If there are more than `pool_size`,
    a uniform sample of them in the same order. If there are fewer, up to `extra_max` best kernels
    of other components follow: their number is drawn from a truncated geometric distribution, and
    they are drawn by softmax of their speedups without replacement.
    """
    on_path = tree.components_on_path(node_id)
    pool = [tree.best_kernels[head] for head in on_path if head in tree.best_kernels]
    if len(pool) > settings.pool_size:
        chosen = set(rng.sample(pool, settings.pool_size))
        return [kernel for kernel in pool if kernel in chosen]
    extra_max = min(settings.extra_max, settings.pool_size - len(pool))
    count = truncated_geometric(settings.extra_p, extra_max, rng)
    if count == 0:
        return pool
    others = [kernel for head, kernel in tree.best_kernels.items() if head not in on_path]
    for _ in range(min(count, len(others))):
        index = softmax_choice([tree[kernel].rank[2] for kernel in others], rng)
        pool.append(others.pop(index))
    return pool


def diverse_pool(
    tree: Tree,
    pool: Sequence[int],
    others: Sequence[int],
    traits: Mapping[int, Traits],
    size: int,
    rng: random.Random,
) -> list[int]:
    """Return `pool`, extended to `size` by fast kernels that differ from those before them.

    Kernels are drawn one at a time, by softmax of `ln` speed plus the distance to the nearest
    kernel in the pool, so that speed and novelty weigh alike. After maximal marginal relevance
    (Carbonell and Goldstein 1998, The Use of MMR), but drawn at random, so that the next step sees
    other kernels.
    """
    chosen, left = list(pool[:size]), list(others)
    novelty = {
        kernel: min((distance(traits[kernel], traits[other]) for other in chosen), default=0.0)
        for kernel in left
    }
    while left and len(chosen) < size:
        scores = [
            _INVERSE_TEMPERATURE * (tree[kernel].log_speed + novelty[kernel]) for kernel in left
        ]
        picked = left.pop(softmax_choice(scores, rng))
        chosen.append(picked)
        for kernel in left:
            novelty[kernel] = min(novelty[kernel], distance(traits[kernel], traits[picked]))
    return chosen


def small_window(tree: Tree, node_id: int, settings: Config) -> list[int]:
    """Return the ids shown to a small step from `node_id`, oldest first, `node_id` last.

    The window is the path from the nearest large step to `node_id`, cut to its last
    `settings.window` kernels; siblings are left out. `node_id` is not the root.
    """
    head, window = tree[node_id].component, [node_id]
    while len(window) < settings.window and window[-1] != head:
        window.append(tree[window[-1]].parent_id or ROOT_ID)
    return window[::-1]


def truncated_geometric(p: float, limit: int, rng: random.Random) -> int:
    """Draw a count from 0 to `limit` with `P(k)` proportional to `(1 - p)^k`."""
    [count] = rng.choices(range(limit + 1), weights=[(1 - p) ** k for k in range(limit + 1)])
    return count


def softmax_choice(scores: Sequence[float], rng: random.Random) -> int:
    """Draw an index with a probability proportional to `exp(score)`."""
    top = max(scores)  # subtracted so that exp stays finite
    [index] = rng.choices(range(len(scores)), weights=[math.exp(s - top) for s in scores])
    return index
