"""Simulated searches, many of them."""

from __future__ import annotations

import multiprocessing
import random
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from adaexplore.evaluation import Passed, rank
from adaexplore.node import ROOT_ID
from adaexplore.search import Selection, Tree, reward_function, shown_to, step_rng
from adaexplore.simulate.contenders import Contender
from adaexplore.simulate.landscape import Kernel, Landscape

_CHUNK = 10
"""Seeds that one process does at a time."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is simulated: every contender on every landscape under every seed.

    `parallel` steps are under way at a time in each search.
    """

    contenders: Sequence[Contender]
    landscapes: Sequence[Landscape]
    steps: int
    seeds: Sequence[int]
    parallel: int = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """One contender on one landscape: for each seed, what was found after every step.

    That is the true speedup of the kernel that was measured fastest, or 1, the reference itself,
    where nothing was measured faster than that.
    """

    contender: str
    landscape: str
    optima: Sequence[float]
    curves: Sequence[Sequence[float]]


def run(
    contender: Contender, landscape: Landscape, seed: int, steps: int, parallel: int = 1
) -> list[float]:
    """One search; what was found after every step (see `Outcome`)."""
    world, tree, policy = landscape.world(seed), Tree(), contender.policy()
    settings = contender.settings
    reward = reward_function(settings.reward)
    kernels: list[Kernel] = []
    under_way: deque[tuple[Selection, Sequence[int], random.Random]] = deque()
    best, found, asked = 1.0, 1.0, 0
    curve: list[float] = []
    while len(kernels) < steps:
        while len(under_way) < parallel and asked < steps:
            asked += 1
            rng = step_rng(seed, asked)
            selection = policy.select(tree, rng)
            tree.begin(selection.node_id, selection.step_kind)
            under_way.append((selection, shown_to(tree, selection, settings, rng), rng))
        selection, shown, rng = under_way.popleft()
        at = selection.node_id
        parent = kernels[at - 1] if at != ROOT_ID else None
        kernel = world.grow(parent, selection.step_kind, [kernels[i - 1] for i in shown], rng)
        kernels.append(kernel)
        evaluation = kernel.evaluation
        tree.end(at, selection.step_kind)
        tree.add(len(kernels), at, selection.step_kind, reward(evaluation), rank(evaluation))
        policy.record(tree, len(kernels), kernel.look)
        if isinstance(evaluation, Passed) and kernel.measured > best:
            best, found = kernel.measured, kernel.speedup
        curve.append(found)
    return curve


def simulate(
    plan: Plan, jobs: int = 1, progress: Callable[[int], None] = lambda _: None
) -> list[Outcome]:
    """All searches of a plan, in `jobs` processes; `progress` is told how many are done at a time.

    The same plan has the same outcomes, however many processes do it.
    """
    pairs = [(c, scape) for c in plan.contenders for scape in plan.landscapes]
    chunks = [plan.seeds[i : i + _CHUNK] for i in range(0, len(plan.seeds), _CHUNK)]
    tasks = [(pair, chunk) for pair in range(len(pairs)) for chunk in range(len(chunks))]
    done: dict[tuple[int, int], list[list[float]]] = {}
    context = multiprocessing.get_context("spawn")  # progress bars have threads, which do not fork
    with ProcessPoolExecutor(jobs, context) as pool:
        waiting = {
            pool.submit(_searches, *pairs[p], chunks[c], plan.steps, plan.parallel): (p, c)
            for p, c in tasks
        }
        for future in as_completed(waiting):
            done[waiting[future]] = future.result()
            progress(len(done[waiting[future]]))
    return [
        Outcome(
            contender.name,
            landscape.name,
            [landscape.world(seed).optimum for seed in plan.seeds],
            [curve for c in range(len(chunks)) for curve in done[p, c]],
        )
        for p, (contender, landscape) in enumerate(pairs)
    ]


def _searches(
    contender: Contender, landscape: Landscape, seeds: Sequence[int], steps: int, parallel: int
) -> list[list[float]]:
    return [run(contender, landscape, seed, steps, parallel) for seed in seeds]
