"""Simulated searches, many of them."""

from __future__ import annotations

import multiprocessing
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from adaexplore.core import ROOT_ID, Config, Evaluation, best_correct, rank
from adaexplore.search import (
    Selection,
    Tree,
    context_ids,
    needs_remeasure,
    next_to_confirm,
    reward_function,
    settled,
    shrunk,
    step_rng,
    worst_of,
)
from adaexplore_lab.simulate.contenders import Contender
from adaexplore_lab.simulate.landscape import Landscape, SimulatedKernel, World

_CHUNK = 10
"""Seeds that one process does at a time."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A simulation of every contender on every landscape under every seed.

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

    That is the true speedup of the kernel that a search which ended there would ship: of the one
    that measured fastest when the best were confirmed, or 1, the reference itself, where that is
    not faster.
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
    reward = reward_function(settings.reward, settings.compiled)
    kernels: list[SimulatedKernel] = []
    searched: dict[int, Evaluation] = {}
    under_way: deque[tuple[Selection, Sequence[int], random.Random]] = deque()
    asked = 0
    curve: list[float] = []
    while len(kernels) < steps:
        while len(under_way) < parallel and asked < steps:
            asked += 1
            rng = step_rng(seed, asked)
            selection = policy.select(tree, rng)
            tree.begin(selection.node_id, selection.step_kind)
            under_way.append((selection, context_ids(tree, selection, settings, rng), rng))
        selection, shown, rng = under_way.popleft()
        at = selection.node_id
        parent = kernels[at - 1] if at != ROOT_ID else None
        kernel = world.grow(parent, selection.step_kind, [kernels[i - 1] for i in shown], rng)
        kernels.append(kernel)
        number = len(kernels)
        evaluation = kernel.evaluation
        best = best_correct(searched)
        if settings.rechecks and needs_remeasure(evaluation, searched[best] if best else None):
            evaluation = worst_of([evaluation, world.measure(kernel, rng).evaluation])
        searched[number] = evaluation
        believed = shrunk(evaluation, tree[at].log_speed) if settings.shrinks else evaluation
        tree.end(at, selection.step_kind)
        order = rank(believed, settings.ranking)
        planned = settings.plan_items if selection.step_kind == "large" else 0
        tree.add(number, at, selection.step_kind, reward(believed), order, planned=planned)
        policy.record(tree, number, kernel.look)
        curve.append(
            _shipped(world, kernels, searched, settings, random.Random(f"{seed}/{number}"))
        )
    return curve


def _shipped(
    world: World,
    kernels: Sequence[SimulatedKernel],
    searched: Mapping[int, Evaluation],
    settings: Config,
    rng: random.Random,
) -> float:
    """The true speedup of what a search that ended here would ship."""
    tries: dict[int, list[Evaluation]] = {}
    if settings.confirm:
        while (chosen := next_to_confirm(searched, tries, settings.confirm_top)) is not None:
            measured = world.measure(kernels[chosen - 1], rng).evaluation
            tries.setdefault(chosen, []).append(measured)
    decided = {i: settled(searched[i], some) for i, some in tries.items()} or searched
    winner = best_correct(decided)
    if winner is None or not needs_remeasure(decided[winner], None):
        return 1.0
    return kernels[winner - 1].speedup


def simulate(
    plan: Experiment, jobs: int = 1, progress: Callable[[int], None] = lambda _: None
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
