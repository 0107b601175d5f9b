"""Rewards that trainers use, by name: pure functions of an evaluation, with their sources.

An evaluation that says nothing about its candidate has no reward: the machinery failed, nothing
here could run it, or others reported it. A correct candidate without a measurement has a speedup of
1, because an estimate is no speedup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from adaexplore.core.errors import BadInputError
from adaexplore.core.verdict.evaluation import Evaluation, Failed, Passed
from adaexplore.search.reward import log_speedup, published

DECOYS = frozenset({"decoy", "no-custom-kernel", "own-kernels-not-launched"})
"""Labels of correct candidates that KernelGYM calls decoys: no kernel of their own does the work.
"""
UNJUDGED = frozenset({"infra_error", "not_run", "reported"})
"""Statuses that say nothing about a candidate."""

_NOT_COMPILED = "compile_error"


def reward_of(name: str, evaluation: Evaluation) -> float | None:
    """Return the reward `name` of an evaluation, None for one that says nothing.

    Raises `BadInputError` for an unknown name.
    """
    if name not in REWARDS:
        raise BadInputError(f"--reward {name[:64]}: no such reward; there are {', '.join(REWARDS)}")
    return REWARDS[name](evaluation) if is_judged(evaluation) else None


def is_judged(evaluation: Evaluation) -> bool:
    """Return whether an evaluation says something about its candidate."""
    return evaluation.status not in UNJUDGED


def is_decoy(evaluation: Evaluation) -> bool:
    """Return whether KernelGYM would call the candidate a decoy: it cheats, or does no work."""
    if isinstance(evaluation, Failed):
        return evaluation.status == "rejected"
    return not DECOYS.isdisjoint(evaluation.labels)


def drkernel_staircase(evaluation: Evaluation) -> float:
    """Return Dr.Kernel's stepped reward (hkust-nlp/KernelGYM, `calculate_reward_like_kernel`).

    -1 for a task that is not completed (a timeout) and for a decoy, -0.5 without compiling, -0.3
    for a wrong result, -0.1 below the speed of eager; else 0.2, 0.4, 0.6, 0.8, 1.0 from 1, 1.2,
    1.5, 2 and 3 times its speed up.
    """
    if is_decoy(evaluation) or evaluation.status == "timeout":
        return -1.0
    if isinstance(evaluation, Failed):
        return -0.5 if evaluation.status == _NOT_COMPILED else -0.3
    speedup = _over_eager(evaluation)
    stairs = ((3.0, 1.0), (2.0, 0.8), (1.5, 0.6), (1.2, 0.4), (1.0, 0.2))
    return next((reward for from_, reward in stairs if speedup >= from_), -0.1)


def drkernel_weighted(evaluation: Evaluation) -> float:
    """Return Dr.Kernel's weighted reward (`calculate_reward_weighted`, its default settings).

    0.5 for a correct result and 0.5 more from 1.01 times the speed of eager up; 0 for a decoy.
    """
    if isinstance(evaluation, Failed) or is_decoy(evaluation):
        return 0.0
    return 0.5 + 0.5 * (_over_eager(evaluation) >= 1.01)


def drkernel_speedup(evaluation: Evaluation) -> float:
    """Return Dr.Kernel's profiling reward (`calculate_reward_speedup`, as its 8B and 14B train).

    `0.5 + 0.5 * min(s, 3) + 0.5 * share` for a correct result with the speedup `s` over eager, of
    whose device time the candidate's own kernels take `share` (0 without a profile); else 0.
    """
    if isinstance(evaluation, Failed) or is_decoy(evaluation):
        return 0.0
    share = evaluation.profile.custom_share if evaluation.profile else 0.0
    return 0.5 + 0.5 * min(_over_eager(evaluation), 3.0) + 0.5 * share


def kernrl(evaluation: Evaluation) -> float:
    """Return the reward of OpenEnv's `kernrl` (meta-pytorch/OpenEnv, `_calculate_reward`).

    -0.5 without compiling, -0.25 for a wrong result; `min(s - 1, 2)` above the speed of eager, half
    of `s - 1` below.
    """
    if isinstance(evaluation, Failed):
        return -0.5 if evaluation.status in (_NOT_COMPILED, "rejected") else -0.25
    gain = _over_eager(evaluation) - 1.0
    return min(gain, 2.0) if gain > 0 else 0.5 * gain


def tritonforge(evaluation: Evaluation) -> float:
    """Return TritonForge's reward (RLsys-Foundation/TritonForge, `calculate_turn_reward`).

    0 without compiling, 0.1 for a wrong result, `0.3 + clip(s - 1, 0, 2)` for a correct one with
    the speedup `s` over eager.
    """
    if isinstance(evaluation, Failed):
        return 0.0 if evaluation.status in (_NOT_COMPILED, "rejected") else 0.1
    return 0.3 + min(max(_over_eager(evaluation) - 1.0, 0.0), 2.0)


REWARDS: Mapping[str, Callable[[Evaluation], float]] = MappingProxyType(
    {
        "log": log_speedup,
        "published": published,
        "drkernel-staircase": drkernel_staircase,
        "drkernel-weighted": drkernel_weighted,
        "drkernel-speedup": drkernel_speedup,
        "kernrl": kernrl,
        "tritonforge": tritonforge,
    }
)
"""All rewards by name. `log` and `published` are those of a search (`search.reward`)."""


def _over_eager(evaluation: Passed) -> float:
    return evaluation.measured.speedup_eager if evaluation.measured else 1.0
