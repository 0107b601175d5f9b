"""Coverage of the intervals of `adaexplore compare`.

    python lab/benchmarks/compare_coverage.py --trials 1000 -o docs/results/compare-coverage.json

Two arms on made-up problems: on each, one is faster by a factor whose `ln` is drawn around 0 (from
a normal distribution, or a skewed, exponential one, of standard deviation 0.3), and every run is
off by 0.2. The truth is a ratio of 1. Prints the share of intervals that hold it.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from adaexplore.report import PairedRuns, mean_intervals

EFFECT, RUN = 0.3, 0.2


def held(rng: random.Random, problems: int, runs: int, shape: str) -> bool:
    """Return True if the interval of one made-up comparison contains 1."""
    units = []
    for _ in range(problems):
        normal = shape == "normal"
        effect = rng.gauss(0, EFFECT) if normal else rng.expovariate(1 / EFFECT) - EFFECT
        own = [[effect + rng.gauss(0, RUN)] for _ in range(runs)]
        units.append(PairedRuns(own, [[rng.gauss(0, RUN)] for _ in range(runs)]))
    [interval] = mean_intervals(units)
    assert interval is not None
    return interval[0] <= 1 <= interval[1]


def main() -> None:
    """Print and write the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    rows = []
    for problems in (6, 8, 16, 40):
        for runs in (1, 3):
            for shape in ("normal", "exponential"):
                rng = random.Random(0)
                times = sum(held(rng, problems, runs, shape) for _ in range(options.trials))
                row = {"problems": problems, "runs": runs, "effects": shape}
                rows.append(row | {"trials": options.trials, "held": times / options.trials})
                print(*rows[-1].values(), flush=True)
    if options.output:
        lines = ",\n ".join(map(json.dumps, rows))
        options.output.write_text(f"[{lines}]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
