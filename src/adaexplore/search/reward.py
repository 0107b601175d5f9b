"""Reward functions: the quality of a candidate as one number that the tree can average.

A correct candidate without a measurement earns the reward of a speedup of 1, because an estimate is
no speedup.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

from adaexplore.core.tree import WRONG_REWARD
from adaexplore.core.verdict.evaluation import NOT_COMPILED, Evaluation, Failed

RewardFunction = Callable[[Evaluation], float]

NOT_COMPILED_REWARD = 0.0
SLOWEST_REWARD = 0.4
"""Limit of the reward of a correct candidate as its speedup tends to 0."""
TENFOLD_REWARD = 1.6
"""Reward of a correct candidate at a speedup of 10."""

_CLIP_LOW, _CLIP_HIGH = 0.1, 10.0
_SPAN = 1.2  # written out, because the difference of the two is rounded and would break ties


Compiled = Literal["kernels", "module"]
"""What has to compile, as `Config.compiled` has it."""


def published(evaluation: Evaluation, compiled: Compiled = "kernels") -> float:
    """Return the paper's reward (arXiv 2604.16625): linear in the speedup over eager, clipped.

    The reward is 0 if the candidate does not compile, 0.05 if it compiles and is wrong, else
    `0.4 + 1.2 * (clip(s, 0.1, 10) - 0.1) / 9.9` for the speedup `s` over eager.
    """
    if isinstance(evaluation, Failed):
        return _failed(evaluation, compiled)
    speedup = evaluation.measured.speedup_eager if evaluation.measured else 1.0
    clipped = min(max(speedup, _CLIP_LOW), _CLIP_HIGH)
    return SLOWEST_REWARD + _SPAN * (clipped - _CLIP_LOW) / (_CLIP_HIGH - _CLIP_LOW)


def log_speedup(evaluation: Evaluation, compiled: Compiled = "kernels") -> float:
    """Return the default reward: logarithmic in the like-for-like speedup `s`, without a ceiling.

    The reward is 0 if the candidate does not compile, 0.05 if it compiles and is wrong, else
    `0.4 + k * (1 + f(s))` with `f(s) = ln s` from 1x up, `f(s) = s - 1` below, and
    `k = 1.2 / (1 + ln 10)`.

    Every doubling is worth the same (k ln 2 = 0.25). The difference between 1.0x and 1.2x, where
    most real results lie, therefore stays visible beside a rare 10x, and 20x still beats 10x. Below
    1x the logarithm is unbounded, so its tangent at 1x replaces it: value and slope stay
    continuous, and a correct candidate, however slow, stays above a wrong one. `k` and the floor
    are chosen so that both ends meet the published reward: 0.4 for the slowest, 1.6 at 10x.
    """
    if isinstance(evaluation, Failed):
        return _failed(evaluation, compiled)
    speedup = evaluation.measured.speedup if evaluation.measured else 1.0
    scale = (TENFOLD_REWARD - SLOWEST_REWARD) / (1 + math.log(10))
    gain = math.log(speedup) if speedup >= 1 else speedup - 1
    return SLOWEST_REWARD + scale * (1 + gain)


def reward_function(
    name: Literal["log", "published"], compiled: Compiled = "kernels"
) -> RewardFunction:
    """Return the reward function that `Config.reward` names, with `Config.compiled`."""
    return partial({"log": log_speedup, "published": published}[name], compiled=compiled)


def _failed(evaluation: Failed, compiled: Compiled) -> float:
    if compiled == "module" and evaluation.loaded:
        return WRONG_REWARD
    return NOT_COMPILED_REWARD if evaluation.status in NOT_COMPILED else WRONG_REWARD
