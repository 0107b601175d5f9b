"""The runs of a study as its summary reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adaexplore.core.node import StepKind
from adaexplore.core.verdict.evaluation import Timing
from adaexplore.report.campaign.summary import Result
from adaexplore.report.compare.traces import RunTrace

Cell = tuple[str, int]
"""A problem and a seed: what every arm searches once."""


@dataclass(frozen=True, slots=True)
class StudyStep:
    """One step of a run.

    Its base is the kernel that it began from: its parent, or for a step from nothing the best
    kernel so far. `gain` is `ln` of its speedup over the base's, None unless both were measured.
    `similarity` is that of the two sources, from 0 to 1, None without a base. `improved` is true
    for a new best. `shown` names the rules of the memory that its prompts told, `broken` those that
    its source breaks; `rule_tokens` is the length of the rules told. `prompted` is false where no
    prompt was kept or made.
    """

    kind: StepKind
    correct: bool
    gain: float | None = None
    similarity: float | None = None
    improved: bool = False
    prompted: bool = False
    shown: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    rule_tokens: int = 0


@dataclass(frozen=True, slots=True)
class StudyRun:
    """The search of one problem by one arm with one seed.

    `trace` is None before the run begins. `memory` names its memory, of `rules` rules.
    """

    arm: str
    problem: str
    seed: int
    result: Result
    trace: RunTrace | None = None
    steps: tuple[StudyStep, ...] = ()
    memory: str = "none"
    rules: int = 0

    @property
    def cell(self) -> Cell:
        """The problem and the seed."""
        return self.problem, self.seed

    @property
    def timing(self) -> Timing | None:
        """The claimed measurement, None without a correct kernel."""
        return self.result.timing

    @property
    def counts(self) -> bool:
        """True for a run that was judged by measurements."""
        return self.result.judged and self.result.verdict != "unmeasured"


@dataclass(frozen=True, slots=True)
class StudyArmInfo:
    """An arm: its name, and the settings that tell it from the first, or the first from others."""

    name: str
    settings: Mapping[str, Any]


def paired_cells(runs: Sequence[StudyRun], arms: Sequence[str]) -> list[Cell]:
    """Return the problems and seeds, in order, that count in every arm."""
    counted = {(run.arm, *run.cell) for run in runs if run.counts}
    cells = dict.fromkeys(run.cell for run in runs)
    return [cell for cell in cells if all((arm, *cell) in counted for arm in arms)]


def by_problem(
    runs: Sequence[StudyRun], arm: str, cells: Sequence[Cell]
) -> dict[str, list[StudyRun]]:
    """Return an arm's runs of these cells by problem, the seeds of each in order."""
    own = {run.cell: run for run in runs if run.arm == arm}
    found: dict[str, list[StudyRun]] = {}
    for cell in cells:
        found.setdefault(cell[0], []).append(own[cell])
    return found
