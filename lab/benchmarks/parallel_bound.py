"""Cost of steps in flight for a search that knows everything, beside that for `archive`.

    python lab/benchmarks/parallel_bound.py --seeds 100 -o docs/results/simulate-parallel-bound.json

With several steps under way each is chosen before the last results are in, and no kernel has more
ancestors than there have been rounds. An oracle tells that cost from a policy's own. It sees the
true family, gap and ceiling of every kernel. Its first steps are large, shown the best family or
nothing; the others are small ones on the kernel that will be the fastest when the steps are spent.
How many are large, and whether they are shown anything, is the best of `LARGE` in hindsight, for
each landscape, number of steps and number under way: a strong searcher, not proven the strongest.
The landscapes are the synthetic ones with slopes; on rugged ground what a small step gains is not
known in advance.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from adaexplore.core import StepKind
from adaexplore.search import step_rng
from adaexplore_lab.simulate import (
    SYNTHETIC,
    ContenderResult,
    Outcome,
    SimulatedKernel,
    parse_contender,
    run,
    standings,
)
from adaexplore_lab.simulate.synthetic import Terrain

LARGE = (0.02, 0.08, 0.16, 0.32, 0.48, 0.64, 0.8)
"""Shares of the steps that are large."""

STEPS = (50, 100)

Curve = list[float]


def main() -> None:
    """Print and write a table."""
    options = _options()
    terrains = [terrain for terrain in SYNTHETIC.values() if terrain.ground != "rugged"]
    seeds = range(options.seeds)
    found = []
    for steps in STEPS:
        outcomes = [
            outcome
            for parallel in (1, options.parallel)
            for terrain in terrains
            for outcome in (
                _outcome("oracle", parallel, terrain, _informed(terrain, seeds, steps, parallel)),
                _outcome("archive", parallel, terrain, _archive(terrain, seeds, steps, parallel)),
            )
        ]
        for name in ("oracle", "archive"):
            pair = [outcome for outcome in outcomes if outcome.contender.startswith(name)]
            found += [standing for standing in standings(pair) if standing.step == steps]
    Console().print(_table(found))
    if options.output:
        rows = json.dumps([asdict(standing) for standing in found])
        rounded = json.loads(rows, parse_float=lambda number: round(float(number), 4))
        text = json.dumps({"seeds": options.seeds, "standings": rounded}) + "\n"
        options.output.write_text(text, encoding="utf-8")


def oracle(
    terrain: Terrain, seed: int, steps: int, parallel: int, large: int, shows: bool
) -> Curve:
    """One search of the oracle's; the best true speedup after every step, 1 at the least."""
    world = terrain.world(seed)
    passed: list[SimulatedKernel] = []
    under_way: deque[
        tuple[SimulatedKernel | None, StepKind, list[SimulatedKernel], random.Random]
    ] = deque()
    curve: Curve = []
    for number in range(1, steps + parallel):
        if number <= steps:
            rng = step_rng(seed, number)
            left = _gap_left(terrain, steps - number + 1, parallel)
            if number <= large or not passed:
                highest = max(passed, key=lambda kernel: kernel.state.family, default=None)
                under_way.append((None, "large", [highest] if highest and shows else [], rng))
            else:
                under_way.append((max(passed, key=lambda k: _foreseen(k, left)), "small", [], rng))
        if number >= parallel:
            kernel = world.grow(*under_way.popleft())
            if kernel.status == "passed":
                passed.append(kernel)
            curve.append(max(kernel.speedup, curve[-1] if curve else 1.0))
    return curve


def _gap_left(terrain: Terrain, steps: int, parallel: int) -> float:
    """The share of a gap that small steps leave of it: in each round the best of them counts."""
    climbs = terrain.p_climb * (1 - terrain.fail_small)
    low, high = terrain.climb
    best = low + (high - low) / (1 + max(parallel * climbs, 1.0))
    some_climb = 1 - (1 - climbs) ** parallel
    share: float = best ** (some_climb * steps / parallel)
    return share


def _foreseen(kernel: SimulatedKernel, left: float) -> float:
    """`ln` of the speedup when so much of the kernel's gap is left."""
    gap: float = kernel.state.gap
    return math.log(kernel.speedup) + gap * (1.0 - left)


def _informed(terrain: Terrain, seeds: Sequence[int], steps: int, parallel: int) -> list[Curve]:
    """The oracle's searches with what is best in hindsight."""
    tried = [
        [oracle(terrain, seed, steps, parallel, round(share * steps), shows) for seed in seeds]
        for share, shows in product(LARGE, (True, False))
    ]
    return max(tried, key=lambda curves: fmean(math.log(curve[-1]) for curve in curves))


def _archive(terrain: Terrain, seeds: Sequence[int], steps: int, parallel: int) -> list[Curve]:
    contender = parse_contender("archive")
    return [run(contender, terrain, seed, steps, parallel) for seed in seeds]


def _outcome(name: str, parallel: int, terrain: Terrain, curves: list[Curve]) -> Outcome:
    optima = [terrain.world(seed).optimum for seed in range(len(curves))]
    return Outcome(f"{name}, {parallel} under way", terrain.name, optima, curves)


def _table(found: Sequence[ContenderResult]) -> Table:
    table = Table("landscape", "steps", "search", "speedup", "over one at a time", box=None)
    for standing in found:
        low, high = standing.ratio_interval
        ratio = f"{standing.ratio:.2f} ({low:.2f}–{high:.2f})"
        figures = (str(standing.step), standing.contender, f"{standing.speedup:.2f}", ratio)
        table.add_row(standing.landscape, *figures)
    return table


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
