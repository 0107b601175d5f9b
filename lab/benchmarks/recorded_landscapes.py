"""Statistics of recorded searches about steps and policies, with intervals.

    python lab/benchmarks/recorded_landscapes.py docs/results/landscapes-h200.json -o fit.json

What came of steps, by their kind and by how good the kernel was that they started from; whether
better kernels have better children; what the fit foretells of the runs it was fitted to, beside
what they found; and how policies stand on it, with what is uncertain about the fit apart from the
luck of the searches.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Sequence
from copy import copy
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median, variance
from typing import Any

from rich.console import Console
from rich.table import Table

from adaexplore_lab.simulate import (
    FITS,
    Experiment,
    Fitted,
    Outcome,
    RecordedRun,
    fitted_landscapes,
    parse_contender,
    read_runs,
    run,
    simulate,
)
from adaexplore_lab.simulate.command import ALL
from adaexplore_lab.simulate.fitted import Transition

AFTER = (1, 2, 4, 6, 8, 10)
"""Steps after which what was found is compared with what the fit foretells."""

CHECKED = (10, 25)
"""Steps at which policies are compared; later all are at the best that was recorded."""

NEAR = 0.25
"""So many units from the best that was recorded is as good as that."""

RESAMPLES = 1000


def main() -> None:
    """Print and write tables."""
    options = _options()
    runs = read_runs(options.file)
    landscapes = fitted_landscapes(runs)
    clusters = landscapes[0].clusters
    found = {
        "steps": steps_by_start(clusters),
        "inheritance": [
            {"steps": kind, "Spearman": correlation(clusters, kind)} for kind in ("small", "large")
        ],
        "foretold": foretold(runs, landscapes, options.policy, options.parallel),
        "standings": standings(landscapes, options.repeats, options.jobs),
    }
    console = Console(width=140)
    for name, rows in found.items():
        console.print(_table(name, rows))
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def steps_by_start(clusters: Sequence[Sequence[Transition]]) -> list[dict[str, Any]]:
    """Return the outcomes of steps: large ones, those shown others, small ones by quartile."""
    every = [each for cluster in clusters for each in cluster]
    small = sorted(_started(every, "small"), key=lambda pair: pair[0])
    quarter = math.ceil(len(small) / 4)
    nothing = [each for each in every if each.kind == "large" and each.start is None]
    rows = [_row("large, from nothing", [(0.0, each) for each in nothing])]
    rows.append(_row("large, shown others", _started(every, "large")))
    for at in range(0, len(small), quarter):
        part = small[at : at + quarter]
        rows.append(_row(f"small, from {part[0][0]:.2f} to {part[-1][0]:.2f}", part))
    return rows


def correlation(clusters: Sequence[Sequence[Transition]], kind: str) -> tuple[float, float, float]:
    """Spearman's, of a correct kernel's gap and where its step started, with 95 % interval.

    A bootstrap over runs.
    """

    def of(chosen: Sequence[Sequence[Transition]]) -> float:
        pairs = _started([each for cluster in chosen for each in cluster], kind)
        kept = [(start, each.gap) for start, each in pairs if each.gap is not None]
        return _pearson(_ranks([start for start, _ in kept]), _ranks([gap for _, gap in kept]))

    rng = random.Random(0)
    drawn = sorted(of(rng.choices(clusters, k=len(clusters))) for _ in range(RESAMPLES))
    return (of(clusters), *_ends(drawn))


def foretold(
    runs: Sequence[RecordedRun], landscapes: Sequence[Fitted], policy: str, parallel: int
) -> list[dict[str, Any]]:
    """Geometric means over problems: of the runs from nothing, and of as many simulated ones.

    Once with the fit to all runs, once, for each problem, with that to the runs of the others.
    """
    fresh = [run for run in runs if all(step.origin != "compiler" for step in run.steps)]
    curves = [list(accumulate((s.speedup for s in run.steps), max, initial=1.0)) for run in fresh]
    by_name = {landscape.name: landscape for landscape in landscapes}
    rows = [{"runs": "recorded"} | {str(n): _geometric([c[n] for c in curves]) for n in AFTER}]
    for title, others in (("fit to all", False), ("fit to the others", True)):
        simulated = []
        for each in fresh:
            landscape = by_name[each.problem]
            landscape = _without(landscape, runs) if others else landscape
            simulated.append(_simulated(landscape, policy, parallel))
        row: dict[str, Any] = {"runs": title}
        for n in AFTER:
            rng = random.Random(n)
            suites = sorted(
                _geometric([rng.choice(of_one)[n - 1] for of_one in simulated])
                for _ in range(RESAMPLES)
            )
            row[str(n)] = (median(suites), *_ends(suites))
        rows.append(row)
    return rows


def standings(landscapes: Sequence[Fitted], repeats: int, jobs: int) -> list[dict[str, Any]]:
    """Every policy over the default one, with the interval that the fit's uncertainty leaves.

    Each fit is searched `repeats` times; what fits differ by beyond the luck of the searches is a
    one-way analysis of variance with random effects. `gm` is the geometric mean over all.
    """
    plan = Experiment(
        [parse_contender(name) for name in dict.fromkeys(("archive", *ALL))],
        landscapes,
        CHECKED[-1],
        range(FITS * repeats),
    )
    outcomes = simulate(plan, jobs)
    rows = []
    for contender in plan.contenders:
        row: dict[str, Any] = {"policy": contender.name}
        for step in CHECKED:
            logs = _logs(outcomes, contender.name, step)
            first = _logs(outcomes, plan.contenders[0].name, step)
            apart = [one - other for one, other in zip(logs, first, strict=True)]
            row[f"gm {step}"] = math.exp(fmean(logs))
            row[f"over archive {step}"] = _over(apart)
        rows.append(row)
    return rows


def _over(apart: Sequence[float]) -> tuple[float, float, float]:
    """A ratio with its 95 % interval, over fits and what luck is left in the mean over them."""
    fits = [apart[fit::FITS] for fit in range(FITS)]
    luck = fmean(variance(of_one) for of_one in fits) / len(fits[0])
    between = max(variance(fmean(of_one) for of_one in fits) - luck, 0.0)
    middle, spread = fmean(apart), 1.96 * math.sqrt(between + luck / FITS)
    return (math.exp(middle), math.exp(middle - spread), math.exp(middle + spread))


def _logs(outcomes: Sequence[Outcome], contender: str, step: int) -> list[float]:
    """For each seed, the mean over landscapes of `ln` of what was found."""
    own = [outcome for outcome in outcomes if outcome.contender == contender]
    seeds = range(len(own[0].curves))
    return [fmean(math.log(o.curves[seed][step - 1]) for o in own) for seed in seeds]


def _simulated(landscape: Fitted, policy: str, parallel: int) -> list[list[float]]:
    contender = parse_contender(policy)
    return [run(contender, landscape, seed, AFTER[-1], parallel) for seed in range(2 * FITS)]


def _without(landscape: Fitted, runs: Sequence[RecordedRun]) -> Fitted:
    """The landscape with what came of steps on other problems only."""
    without = copy(landscape)
    without.clusters = [
        cluster
        for cluster, run in zip(landscape.clusters, runs, strict=True)
        if run.problem != landscape.name
    ]
    return without


def _started(every: Sequence[Transition], kind: str) -> list[tuple[float, Transition]]:
    return [(each.start, each) for each in every if each.kind == kind and each.start is not None]


def _row(title: str, pairs: Sequence[tuple[float, Transition]]) -> dict[str, Any]:
    gaps = [each.gap for _, each in pairs if each.gap is not None]
    better = [each.gap is not None and each.gap < start for start, each in pairs]
    return {
        "steps": title,
        "n": len(pairs),
        "failed": len(pairs) - len(gaps),
        "median gap": median(gaps),
        f"within {NEAR}": sum(gap <= NEAR for gap in gaps) / len(pairs),
        "better than the start": fmean(better),
    }


def _pearson(xs: Sequence[float], ys: Sequence[float]) -> float:
    x, y = fmean(xs), fmean(ys)
    both = math.fsum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return both / math.sqrt(
        math.fsum((a - x) ** 2 for a in xs) * math.fsum((b - y) ** 2 for b in ys)
    )


def _ranks(values: Sequence[float]) -> list[float]:
    """The mean rank of equals."""
    order = sorted(values)
    first = {value: at for at, value in reversed(list(enumerate(order)))}
    last = {value: at for at, value in enumerate(order)}
    return [(first[value] + last[value]) / 2 for value in values]


def _ends(ordered: Sequence[float]) -> tuple[float, float]:
    return ordered[int(0.025 * len(ordered))], ordered[int(0.975 * len(ordered)) - 1]


def _geometric(values: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, values)))


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(*rows[0], title=title, title_justify="left", box=None)
    for row in rows:
        table.add_row(*map(_told, row.values()))
    return table


def _told(value: Any) -> str:
    if isinstance(value, tuple):
        middle, low, high = value
        return f"{middle:.3f} ({low:.3f}–{high:.3f})"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="runs, as simulate --save writes them")
    parser.add_argument("--policy", default="uct", help="the one that made the runs")
    parser.add_argument("--parallel", type=int, default=4, help="steps under way in the runs")
    parser.add_argument("--repeats", type=int, default=8, help="searches of every fit")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
