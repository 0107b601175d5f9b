"""Runs as a comparison reads them: use and best speedup after each step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from adaexplore.core.environment import Environment
from adaexplore.core.node import START, Node, busy_s
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Passed, Timing
from adaexplore.report import text
from adaexplore.report.run.diversity import DiversityPoint

Axis = Literal["steps", "evaluations", "usd", "tokens", "seconds"]
"""The amounts at which searches are compared."""

AXES: tuple[Axis, ...] = get_args(Axis)

WHOLE: frozenset[Axis] = frozenset({"steps", "evaluations"})
"""Axes of whole numbers."""


@dataclass(frozen=True, slots=True)
class Point:
    """The state after one step: the amounts `used` so far on every axis, and the step's result.

    "seconds" is the time during which at least one step was in progress; `device_s` is the time the
    device was held. `structures` and `distance` are those of the correct kernels so far.
    """

    used: Mapping[Axis, float]
    device_s: float
    correct: bool
    timing: Timing | None
    structures: int = 0
    distance: float | None = None


@dataclass(frozen=True, slots=True)
class RunTrace:
    """One run.

    `facets` are the properties that may separate it from other runs (see `make_arms`).
    `environment` describes the machine in words, `labels` are the problem's. `claimed` is the
    measurement of the run's headline, `by_algebra` if its kernel needs less than the reference's
    work. If `ended`, the search had no further step to make. The use
    on the axes in `unknown` is incomplete: prices, or tokens of missing prompts.
    """

    path: str
    problem: Problem
    facets: Mapping[str, Any]
    environment: str
    labels: Mapping[str, str]
    points: tuple[Point, ...]
    claimed: Timing | None = None
    by_algebra: bool = False
    ended: bool = False
    unknown: frozenset[Axis] = frozenset()

    @property
    def key(self) -> str:
        """A key that runs of the same problem share, independent of its path and the seed."""
        problem = self.problem
        parts = (problem.source or problem.name, problem.precision, problem.mode, problem.target)
        return "\0".join(map(str, parts))

    def used(self, axis: Axis) -> float:
        """Return the use of the whole run."""
        return max((point.used[axis] for point in self.points), default=0.0)

    def reach(self, axis: Axis) -> float:
        """Return the amount up to which the search's result is known."""
        return math.inf if self.ended else self.used(axis)

    def within(self, axis: Axis, at: float) -> list[Point]:
        """Return the steps that ended within amount `at`."""
        return [point for point in self.points if point.used[axis] <= at]

    def best(self, axis: Axis, at: float) -> Timing | None:
        """Return the best measurement within amount `at`, None without a correct kernel."""
        timings = [point.timing for point in self.within(axis, at) if point.timing]
        return max(timings, key=lambda timing: timing.at_least, default=None)


def points(
    nodes: Sequence[Node],
    spent: Sequence[tuple[float, int]],
    spread: Sequence[DiversityPoint],
) -> tuple[Point, ...]:
    """Return the points of a run's nodes, in order.

    `spent` has the dollars and tokens of each step's calls, `spread` the diversity after it.
    """
    found, seen = [], set()
    steps, evaluations, tokens = 0, 0, 0
    usd = device_s = 0.0
    for node, bill, apart, seconds in zip(nodes, spent, spread, busy_s(nodes), strict=True):
        steps += node.proposal.origin != START
        known = node.reused and (node.candidate in seen or not node.evaluation.cost.wall_s)
        if not known and not node.proposal.failure:
            evaluations += max(len(node.repeats), 1)
            device_s += node.evaluation.cost.device_s
        seen.add(node.candidate)
        usd, tokens = usd + bill[0], tokens + bill[1]
        passed = node.evaluation if isinstance(node.evaluation, Passed) else None
        found.append(
            Point(
                used={
                    "steps": steps,
                    "evaluations": evaluations,
                    "usd": usd,
                    "tokens": tokens,
                    "seconds": seconds,
                },
                device_s=device_s,
                correct=passed is not None,
                timing=passed.measured if passed else None,
                structures=apart.structures,
                distance=apart.distance,
            )
        )
    return tuple(found)


def spelled(axis: Axis, amount: float) -> str:
    """Return an amount with its unit, such as `25 steps`, `0.50 USD` or `12 min 30 s`."""
    if axis in WHOLE:
        return f"{amount:.0f} {axis if amount != 1 else axis.removesuffix('s')}"
    if axis == "usd":
        return text.usd(amount)
    return text.tokens(amount) if axis == "tokens" else text.duration_s(amount)


def judged_on(problem: Problem, environment: Environment) -> str:
    """Return the measuring machine, such as `NVIDIA H200, torch 2.11.0, triton 3.6.0`."""
    threads = f", {environment.threads} threads" if environment.threads else ""
    processor = f"{environment.cpu or 'CPU'}{threads}"
    parts = [processor if problem.device == "cpu" else environment.gpu or problem.device]
    versions = {"torch": environment.torch, "triton": environment.triton}
    parts += [f"{name} {version}" for name, version in versions.items() if version]
    parts += [f"estimated for {problem.target}"] if problem.target else []
    return ", ".join(parts)
