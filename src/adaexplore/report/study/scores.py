"""The main table of a study and the tests between its arms, over the cells that all arms have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from adaexplore.core.verdict.evaluation import Timing
from adaexplore.report.averages import Averages, averages
from adaexplore.report.compare.comparison import Pair
from adaexplore.report.compare.standings import pair
from adaexplore.report.study.runs import Cell, StudyRun, by_problem

FAST = (1.0, 1.2, 1.5, 2.0)
"""Values of p for fast_p."""

Scope = Literal["all", "unlabelled"]
Baseline = Literal["strongest", "eager"]

_SPEEDUPS: dict[Baseline, Callable[[Timing], float]] = {
    "strongest": lambda timing: timing.claim,
    "eager": lambda timing: timing.speedup_eager,
}


@dataclass(frozen=True, slots=True)
class ArmScore:
    """An arm's averages over the runs of a scope, against a baseline.

    Every run counts once, so that a figure is the mean over seeds of that of each seed. `correct`
    counts the runs with a correct kernel.
    """

    arm: str
    scope: Scope
    baseline: Baseline
    problems: int
    runs: int
    correct: int
    averages: Averages


@dataclass(frozen=True, slots=True)
class ScopeTests:
    """Every arm over every arm before it, over the problems of a scope, like for like."""

    scope: Scope
    problems: int
    pairs: tuple[Pair, ...]


def scopes(runs: Sequence[StudyRun], cells: Sequence[Cell]) -> dict[Scope, list[Cell]]:
    """Return the cells of all problems, and those of problems where speedups mean something.

    The latter have no label that sets them apart, and no arm's winner has such a label or needs
    less than the reference's work.
    """
    chosen = set(cells)
    apart = {
        run.problem
        for run in runs
        if run.cell in chosen and (run.result.set_apart or run.result.by_algebra)
    }
    own = [cell for cell in cells if cell[0] not in apart]
    found: dict[Scope, list[Cell]] = {"all": list(cells), "unlabelled": own}
    return {scope: some for scope, some in found.items() if some}


def arm_scores(
    runs: Sequence[StudyRun], arms: Sequence[str], cells: Sequence[Cell]
) -> Iterator[ArmScore]:
    """Yield the rows of the main table."""
    for scope, some in scopes(runs, cells).items():
        for baseline, speedup in _SPEEDUPS.items():
            for arm in arms:
                own = by_problem(runs, arm, some)
                timings = [run.timing for each in own.values() for run in each]
                found = [speedup(timing) for timing in timings if timing]
                yield ArmScore(
                    arm=arm,
                    scope=scope,
                    baseline=baseline,
                    problems=len(own),
                    runs=len(timings),
                    correct=len(found),
                    averages=averages(found, len(timings), FAST),
                )


def arm_tests(
    runs: Sequence[StudyRun], arms: Sequence[str], cells: Sequence[Cell]
) -> Iterator[ScopeTests]:
    """Yield the tests of all pairs of arms, paired by problem and seed."""
    for scope, some in scopes(runs, cells).items():
        measured = {
            arm: [[run.timing for run in each] for each in by_problem(runs, arm, some).values()]
            for arm in arms
        }
        pairs = tuple(
            pair(arm, measured[arm], over, measured[over]) for over, arm in combinations(arms, 2)
        )
        yield ScopeTests(scope, len({problem for problem, _ in some}), pairs)
