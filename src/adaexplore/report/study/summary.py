"""The summary of a study, computed once; renderers only draw it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from adaexplore.core.text.units import plural
from adaexplore.report.campaign.summary import CampaignSummary
from adaexplore.report.compare.arms import SearchArm
from adaexplore.report.compare.comparison import Comparison
from adaexplore.report.compare.compute import compare
from adaexplore.report.compare.traces import Axis, RunTrace
from adaexplore.report.study.heat import HeatMap, as_json, rule_map, speedup_map
from adaexplore.report.study.kinds import KindRow, MemoryRow, kind_rows, memory_rows
from adaexplore.report.study.runs import Cell, StudyArmInfo, StudyRun, paired_cells
from adaexplore.report.study.scores import ArmScore, ScopeTests, arm_scores, arm_tests

_AXES: tuple[tuple[Axis, ...], ...] = (("steps",), ("usd", "tokens"), ("seconds",))
"""The axes of the curves; of several alternatives the first that is known for all runs."""

Choosers = Callable[[Axis], Callable[[float], Sequence[float]]]
"""Returns the choice of checkpoints along an axis."""


@dataclass(frozen=True, slots=True)
class StudySummary:
    """The summary of a study.

    Figures over problems are over the `cells`, problems with seeds that every arm has judged.
    `campaign` has all runs.
    """

    arms: tuple[StudyArmInfo, ...]
    cells: tuple[Cell, ...]
    scores: tuple[ArmScore, ...]
    tests: tuple[ScopeTests, ...]
    comparisons: tuple[Comparison, ...]
    kinds: tuple[KindRow, ...]
    memory: tuple[MemoryRow, ...]
    speedups: HeatMap
    shown: HeatMap
    broken: HeatMap
    notes: tuple[str, ...]
    campaign: CampaignSummary

    @property
    def problems(self) -> list[str]:
        """The problems of the cells, in order."""
        return list(dict.fromkeys(problem for problem, _ in self.cells))

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "arms": [asdict(arm) for arm in self.arms],
            "cells": [list(cell) for cell in self.cells],
            "scores": [asdict(score) for score in self.scores],
            "tests": [asdict(tests) for tests in self.tests],
            "comparisons": [one.to_json() for one in self.comparisons],
            "kinds": [asdict(row) for row in self.kinds],
            "memory": [asdict(row) for row in self.memory],
            "speedups": as_json(self.speedups),
            "rules_shown": as_json(self.shown),
            "rules_broken": as_json(self.broken),
            "notes": list(self.notes),
            "campaign": self.campaign.to_json(),
        }


def summarize_study(
    runs: Sequence[StudyRun],
    arms: Sequence[StudyArmInfo],
    campaign: CampaignSummary,
    choosers: Choosers,
) -> StudySummary:
    """Return the summary of these runs; `choosers` place the checkpoints of the curves."""
    names = [arm.name for arm in arms]
    cells = paired_cells(runs, names)
    return StudySummary(
        arms=tuple(arms),
        cells=tuple(cells),
        scores=tuple(arm_scores(runs, names, cells)),
        tests=tuple(arm_tests(runs, names, cells)),
        comparisons=tuple(_comparisons(runs, names, cells, campaign.command, choosers)),
        kinds=tuple(kind_rows(runs, names)),
        memory=tuple(memory_rows(runs, names)),
        speedups=speedup_map(runs, names),
        shown=rule_map(runs, "shown"),
        broken=rule_map(runs, "broken"),
        notes=tuple(_notes(runs, cells)),
        campaign=campaign,
    )


def _comparisons(
    runs: Sequence[StudyRun],
    names: Sequence[str],
    cells: Sequence[Cell],
    command: str,
    choosers: Choosers,
) -> Iterator[Comparison]:
    chosen = set(cells)
    traces: dict[str, list[RunTrace]] = {name: [] for name in names}
    for run in runs:
        if run.trace and run.trace.points and run.cell in chosen:
            traces[run.arm].append(run.trace)
    if not all(traces.values()):
        return
    arms = [SearchArm(name, tuple(own)) for name, own in traces.items()]
    every = [trace for own in traces.values() for trace in own]
    for alternatives in _AXES:
        known = [axis for axis in alternatives if all(_is_known(t, axis) for t in every)]
        if known:
            yield compare(arms, known[0], choosers(known[0]), command=command)


def _is_known(trace: RunTrace, axis: Axis) -> bool:
    return axis not in trace.unknown and trace.used(axis) > 0


def _notes(runs: Sequence[StudyRun], cells: Sequence[Cell]) -> Iterator[str]:
    """Yield notes for the reader of the figures."""
    chosen = set(cells)
    missing = [cell for cell in dict.fromkeys(run.cell for run in runs) if cell not in chosen]
    if missing:
        listed = ", ".join(f"{problem} (seed {seed})" for problem, seed in missing)
        yield f"left out, because not every arm has a judged run: {listed}"
    counted = [run.result for run in runs if run.cell in chosen]
    steps = [result.steps for result in counted]
    if steps and min(steps) < max(steps):
        yield f"runs have {min(steps)} to {max(steps)} steps; the figures are those so far"
    loaded = [result for result in counted if result.timing and result.timing.is_under_load]
    if loaded:
        yield (
            "measured while other programs kept the machine busy, so without a claim and counted "
            f"as 1.000×: {plural(len(loaded), 'winner')}"
        )
    open_ = sum(result.left_open and result not in loaded for result in counted)
    if open_:
        yield (
            "left open by a wide interval or short calls, and counted by the lower end of the "
            f"interval: {plural(open_, 'winner')}"
        )
