"""The command that sets policies against landscapes: simulate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import adaexplore
from adaexplore.core import BadInputError, PolicyName, write_whole
from adaexplore.store import read_run
from adaexplore_lab.simulate import (
    SYNTHETIC,
    ContenderResult,
    Experiment,
    Landscape,
    Outcome,
    RecordedRun,
    checkpoints,
    fitted_landscapes,
    parse_contender,
    parse_terrain,
    read_runs,
    recorded_run,
    runs_json,
    simulate,
    standings,
)

ALL = ("uct:reward=published", *get_args(PolicyName))
"""What is compared where nothing else is asked for: every policy, and UCT as it was published."""

_SYNTHETIC = "synthetic:"


def compare(
    policies: Sequence[str],
    landscapes: Sequence[str],
    *,
    steps: int,
    seeds: range,
    parallel: int,
    jobs: int,
    output: Path | None,
) -> int:
    """Simulate, print a table for every landscape, write the results; return the exit code."""
    console = Console()
    plan = Experiment(
        contenders=[parse_contender(text) for text in dict.fromkeys(policies or ALL)],
        landscapes=_landscapes(landscapes or [_SYNTHETIC + name for name in SYNTHETIC]),
        steps=steps,
        seeds=seeds,
        parallel=parallel,
    )
    searches = len(plan.contenders) * len(plan.landscapes) * len(seeds)
    columns = (TextColumn("searches"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=searches)
        outcomes = simulate(plan, jobs, lambda done: progress.advance(task, done))
    found = standings(outcomes)
    for landscape in plan.landscapes:
        console.print(_table(landscape.name, landscape.about, found))
    if len(plan.landscapes) > 1:
        console.print(_table("all", "the mean over landscapes", found))
    if output:
        write_whole(output, json.dumps(_as_json(plan, outcomes, found)) + "\n")
        console.print(str(output), highlight=False, markup=False, soft_wrap=True)
    return 0


def save(landscapes: Sequence[str], output: Path) -> int:
    """Write the records of runs to one file; return the exit code."""
    runs = [run for text in landscapes for run in _recorded(text)]
    fitted_landscapes(runs)  # refuses what nothing can be fitted to
    write_whole(output, runs_json(runs) + "\n")
    print(output)
    return 0


def _landscapes(texts: Sequence[str]) -> list[Landscape]:
    """The synthetic ones that are asked for, and one for each problem of the recorded runs."""
    texts = list(dict.fromkeys(texts))
    synthetic = [text for text in texts if text.startswith(_SYNTHETIC)]
    runs = [run for text in texts if text not in synthetic for run in _recorded(text)]
    return [
        *(parse_terrain(text.removeprefix(_SYNTHETIC)) for text in synthetic),
        *(fitted_landscapes(runs) if runs else ()),
    ]


def _recorded(text: str) -> list[RecordedRun]:
    """The run in a directory, or the runs of a file."""
    path = Path(text)
    if path.is_dir():
        with read_run(path) as run:
            problem = run.store.run().problem.name
            return [recorded_run(path.resolve().name, problem, run.store.nodes())]
    if path.is_file():
        return read_runs(path)
    raise BadInputError(
        f"--landscape {text}: neither a run, nor a file, nor one of "
        + ", ".join(_SYNTHETIC + name for name in SYNTHETIC)
    )


def _table(place: str, about: str, found: Sequence[ContenderResult]) -> RenderableType:
    """Contenders by steps; the last column is the last one over the first contender's."""
    here = [standing for standing in found if standing.landscape == place]
    steps = sorted({standing.step for standing in here})
    table = Table(title=f"{place}: {about}", title_justify="left", box=None, title_style="bold")
    table.add_column("policy", no_wrap=True)
    for step in steps:
        table.add_column(f"{step} steps", justify="right")
    table.add_column("over the first", justify="right")
    for contender in dict.fromkeys(standing.contender for standing in here):
        own = {standing.step: standing for standing in here if standing.contender == contender}
        cells = [_figure(own[step].speedup, own[step].interval) for step in steps]
        last = own[steps[-1]]
        table.add_row(contender, *cells, _figure(last.ratio, last.ratio_interval))
    return table


def _figure(value: float, interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{value:.2f}\n[dim]{low:.2f}–{high:.2f}[/dim]"


def _as_json(
    plan: Experiment, outcomes: Sequence[Outcome], found: Sequence[ContenderResult]
) -> dict[str, Any]:
    steps = checkpoints(plan.steps)
    return {
        "version": adaexplore.__version__,
        "steps": plan.steps,
        "seeds": [plan.seeds[0], plan.seeds[-1]],
        "parallel": plan.parallel,
        "landscapes": {landscape.name: landscape.about for landscape in plan.landscapes},
        "standings": [_rounded(asdict(standing)) for standing in found],
        "found": [
            {
                "contender": outcome.contender,
                "landscape": outcome.landscape,
                "optima": [round(optimum, 4) for optimum in outcome.optima],
                "speedups": {
                    step: [round(curve[step - 1], 4) for curve in outcome.curves] for step in steps
                },
            }
            for outcome in outcomes
        ],
    }


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    """Four digits are more than the intervals allow."""
    rounded: dict[str, Any] = json.loads(json.dumps(values), parse_float=_four_digits)
    return rounded


def _four_digits(number: str) -> float:
    return round(float(number), 4)
