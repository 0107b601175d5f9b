"""Rewards of the field's trainers, each a pure function of an evaluation.

A reward is None where nothing was judged: a failure of the machine is no penalty. A correct
candidate without a measurement counts as one at 1x, because an estimate is no speedup. Where the
authors' speedup is over eager PyTorch, so is the speedup here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from adaexplore.core.errors import BadInputError
from adaexplore.core.evaluation import NOT_COMPILED, Evaluation, Failed, Passed
from adaexplore.search.reward import log_speedup, published

Reward = Callable[[Evaluation], float | None]

UNJUDGED = frozenset({"infra_error", "not_run", "reported"})
"""Statuses that are no verdict on a candidate."""

_STAIRS = ((3.0, 1.0), (2.0, 0.8), (1.5, 0.6), (1.2, 0.4), (1.0, 0.2))
_NOTICEABLE = 1.01
_MOST_SPEEDUP = 3.0
_MOST_GAIN = 2.0


def dr_kernel_staircase(evaluation: Evaluation) -> float:
    """Return Dr.Kernel's staircase (KernelGYM, `calculate_reward_like_kernel`).

    -1 for a decoy or a task that does not end, -0.5 without compiled kernels, -0.3 if it is wrong;
    else 1.0, 0.8, 0.6, 0.4 and 0.2 from 3x, 2x, 1.5x, 1.2x and 1x over eager, -0.1 below.
    """
    if isinstance(evaluation, Failed):
        if evaluation.status in {"rejected", "timeout"}:
            return -1.0
        return -0.5 if evaluation.status in NOT_COMPILED else -0.3
    if _is_decoy(evaluation):
        return -1.0
    speedup = _over_eager(evaluation)
    return next((reward for least, reward in _STAIRS if speedup >= least), -0.1)


def dr_kernel_weighted(evaluation: Evaluation) -> float:
    """Return Dr.Kernel's weighted reward (KernelGYM, `calculate_reward_weighted`).

    0.5 for a correct candidate, and 0.5 more from 1.01x over eager; 0 for a decoy.
    """
    if isinstance(evaluation, Failed) or _is_decoy(evaluation):
        return 0.0
    return 0.5 + 0.5 * (_over_eager(evaluation) >= _NOTICEABLE)


def dr_kernel_speedup(evaluation: Evaluation) -> float:
    """Return Dr.Kernel's reward by speedup and coverage (KernelGYM, `calculate_reward_speedup`).

    With the weights of the released 14B model's training: 0.5 for a correct candidate, 0.5 times
    its speedup over eager, at most 3, and 0.5 times the share of the GPU's time that its own
    kernels take, where a profiler tells it; 0 for a wrong one or a decoy.
    """
    if isinstance(evaluation, Failed) or _is_decoy(evaluation):
        return 0.0
    share = evaluation.profile.custom_share if evaluation.profile else 0.0
    return 0.5 + 0.5 * min(_over_eager(evaluation), _MOST_SPEEDUP) + 0.5 * share


def kernrl(evaluation: Evaluation) -> float:
    """Return the reward of OpenEnv's environment `kernrl`.

    -0.5 without compiled kernels, -0.25 if it is wrong; with the speedup `s` over eager,
    `(s - 1) / 2` below 1x, else `s - 1`, at most 2.
    """
    if isinstance(evaluation, Failed):
        return -0.5 if evaluation.status in NOT_COMPILED else -0.25
    gain = _over_eager(evaluation) - 1.0
    return gain / 2 if gain < 0 else min(gain, _MOST_GAIN)


def tritonforge(evaluation: Evaluation) -> float:
    """Return TritonForge's reward (`kernelbench_config.py`): never negative, at most 2.3.

    0 without compiled kernels, 0.1 if it is wrong, else 0.3, plus what the speedup over eager is
    above 1, at most 2.
    """
    if isinstance(evaluation, Failed):
        return 0.0 if evaluation.status in NOT_COMPILED else 0.1
    return 0.3 + min(max(_over_eager(evaluation) - 1.0, 0.0), _MOST_GAIN)


def _judged(reward: Callable[[Evaluation], float]) -> Reward:
    def judged(evaluation: Evaluation) -> float | None:
        unjudged = isinstance(evaluation, Failed) and evaluation.status in UNJUDGED
        return None if unjudged else reward(evaluation)

    return judged


REWARDS: Mapping[str, Reward] = {
    "log": _judged(log_speedup),
    "published": _judged(published),
    "dr-kernel-staircase": _judged(dr_kernel_staircase),
    "dr-kernel-weighted": _judged(dr_kernel_weighted),
    "dr-kernel-speedup": _judged(dr_kernel_speedup),
    "kernrl": _judged(kernrl),
    "tritonforge": _judged(tritonforge),
}
"""Rewards by name: the two of the search (see `search.reward`), and those of other projects."""


def reward_named(name: str) -> Reward:
    """Return the reward of this name; raise `BadInputError` where there is none."""
    if name not in REWARDS:
        raise BadInputError(f"--reward {name}: there are {', '.join(REWARDS)}")
    return REWARDS[name]


def _over_eager(passed: Passed) -> float:
    return passed.measured.speedup_eager if passed.measured else 1.0


def _is_decoy(passed: Passed) -> bool:
    return "decoy" in passed.labels
