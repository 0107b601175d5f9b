"""Sets ways of sharing a budget over problems against each other, on simulated searches.

    python lab/benchmarks/simulate_campaign.py --seeds 100 -o docs/results/simulate-campaign.json

The loop, the allocation and the rules for stopping are those of `adaexplore campaign`; what a step
comes to is drawn from the synthetic landscapes, two worlds of each kind, and `--idle` worlds in
which there is next to nothing to gain. Searches use the default policy. How much of a roofline is
out of reach differs: its floor lies below the best kernel's time by a factor drawn for each world.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from adaexplore.core import CAMPAIGN_DEFAULTS, Allocation, Config
from adaexplore.run import Campaign, Progress, Rules
from adaexplore.search import Arm, is_flat
from adaexplore_lab.simulate import SYNTHETIC, parse_contender, parse_terrain, run

IDLE = "families:low=0.6,high=1.05"
WORLDS = 2
LONGEST = 400
BUDGETS = (10, 25, 50)
SLACKS = {"0 to 1": 1.0, "0 to 2.5": 2.5, "unknown": None}
"""What the roofline promises beyond the best kernel, in ln: drawn between 0 and this."""

WAYS: dict[str, tuple[Allocation, Config]] = {
    "uniform": ("uniform", Config()),
    "uniform, stopping": ("uniform", Config.model_validate(CAMPAIGN_DEFAULTS)),
    "headroom": ("headroom", Config()),
    "headroom, stopping": ("headroom", Config.model_validate(CAMPAIGN_DEFAULTS)),
}


@dataclass
class Simulated:
    """A `campaign.ProblemJob` along a known curve: ln of the best at each step."""

    curve: Sequence[float]
    limit: float | None
    settings: Config
    made: int = 0
    device: str = "simulated"
    devices: Sequence[str] = ("simulated",)
    problem: str = "simulated"

    @property
    def best(self) -> float:
        """ln of what was found."""
        return self.curve[self.made - 1] if self.made else 0.0

    def progress(self) -> Progress:
        """See `campaign.ProblemJob`."""
        reached = [0.0, *self.curve[: self.made]]
        gains = [after - before for before, after in pairwise(reached)]
        room = None if self.limit is None else max(self.limit - self.best, 0.0)
        near = self.settings.stop_near
        ended = bool(near and room is not None and self.made and math.exp(-room) >= near)
        ended = ended or is_flat(gains, self.settings)
        return Progress(
            Arm(gains, [1.0] * self.made, room),
            left=len(self.curve) - self.made,
            ended="ended" if ended else "",
        )

    def slice(self, steps: int, parallel: int) -> None:  # noqa: ARG002 - the Protocol's
        """See `campaign.ProblemJob`."""
        self.made += steps

    def finish(self) -> None:
        """See `campaign.ProblemJob`."""

    def suspend(self) -> None:
        """See `campaign.ProblemJob`."""


def campaigns(seed: int, idle: int) -> dict[str, list[float]]:
    """By slack and way, the mean ln of what is found with each budget, on one set of worlds."""
    worlds = [(parse_terrain(kind), WORLDS * seed + i) for kind in SYNTHETIC for i in range(WORLDS)]
    worlds += [(parse_terrain(IDLE), idle * seed + i) for i in range(idle)]
    contender = parse_contender("archive")
    curves = [
        [math.log(found) for found in run(contender, terrain, number, LONGEST)]
        for terrain, number in worlds
    ]
    optima = [max(math.log(terrain.world(number).optimum), 0.0) for terrain, number in worlds]
    found = {}
    for name, slack in SLACKS.items():
        rng = random.Random(seed)
        limits = [None if slack is None else best + rng.uniform(0.0, slack) for best in optima]
        for way in WAYS:
            found[f"{name}/{way}"] = [_found(way, curves, limits, budget) for budget in BUDGETS]
    return found


def _found(
    way: str, curves: Sequence[Sequence[float]], limits: Sequence[float | None], budget: int
) -> float:
    allocation, settings = WAYS[way]
    jobs = [Simulated(curve, limit, settings) for curve, limit in zip(curves, limits, strict=True)]
    Campaign(jobs, Rules(allocation, steps=budget * len(jobs))).run()
    return fmean(job.best for job in jobs)


def interval(logs: Sequence[float]) -> tuple[float, float]:
    """95 % percentile bootstrap of the geometric mean."""
    rng = random.Random(0)
    means = sorted(fmean(rng.choices(logs, k=len(logs))) for _ in range(1000))
    return math.exp(means[25]), math.exp(means[974])


def main() -> None:
    """Simulate and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--idle", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    with ProcessPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(partial(campaigns, idle=options.idle), seeds))
    print(
        "| roofline beyond the best | way | "
        + " | ".join(f"{b} steps each" for b in BUDGETS)
        + " |"
    )
    print("|---" * (2 + len(BUDGETS)) + "|")
    for key in outcomes[0]:
        slack, _, way = key.partition("/")
        cells = []
        for i in range(len(BUDGETS)):
            own = [outcome[key][i] for outcome in outcomes]
            ratios = [outcome[key][i] - outcome[f"{slack}/uniform"][i] for outcome in outcomes]
            low, high = interval(ratios)
            cells.append(
                f"{math.exp(fmean(own)):.3f} ({math.exp(fmean(ratios)):.3f}; {low:.3f}–{high:.3f})"
            )
        print(f"| {slack} | {way} | " + " | ".join(cells) + " |")
    if options.output:
        rounded = [{k: [round(v, 4) for v in row] for k, row in o.items()} for o in outcomes]
        options.output.write_text(
            json.dumps(
                {
                    "seeds": [seeds[0], seeds[-1]],
                    "idle": options.idle,
                    "budgets": BUDGETS,
                    "mean_ln": rounded,
                }
            )
            + "\n"
        )


if __name__ == "__main__":
    main()
