"""The result of a comparison of searches: plain data for the renderers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from adaexplore.core.problem import Precision
from adaexplore.report.averages import Averages
from adaexplore.report.compare.reported import ReportedRun
from adaexplore.report.compare.resample import Interval
from adaexplore.report.compare.traces import Axis

MIN_PROBLEMS = 6
"""Smallest sample for a decision: the odds that five of five agree by chance are 1 in 16."""

Decision = Literal["faster", "slower", "undecided", "too few"]


@dataclass(frozen=True, slots=True)
class FoundSpeedup:
    """Result of an arm's runs of one problem at a given amount.

    `speedup` is the geometric mean of the `runs` that reached the amount; a run without a correct
    kernel counts as 0.1. It is None without such a run. `correct` counts the runs with a correct
    kernel. `noise` is the standard error of `ln speedup` from the measurements.
    """

    speedup: float | None
    runs: int = 0
    correct: int = 0
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class ArmStanding:
    """Result of an arm at a given amount, over the problems that every arm has.

    `speedup` is the geometric mean with its 95 % interval; a run without a correct kernel counts as
    0.1. `averages` are those of a campaign's tables, over the speedups of the problems.
    """

    arm: str
    speedup: float
    interval: Interval | None
    averages: Averages


@dataclass(frozen=True, slots=True)
class Pair:
    """An arm over the first arm at a given amount.

    `ratio` is the geometric mean of the ratios of the problems. A win is a ratio above 1 by more
    than the 95 % intervals of the measurements and by more than 1 %. `p_value` is that of a
    permutation test of no difference, None for a single sample.
    """

    arm: str
    over: str
    ratio: float
    interval: Interval | None
    samples: int
    wins: int
    ties: int
    losses: int
    p_value: float | None
    decision: Decision


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All arms at amount `at`, over the `problems` that every arm has with runs of that length.

    If `at` is None, the claims at the ends of the runs, of any length. `left_out` counts the
    problems that some arm won by algebra and that are therefore not among these.
    """

    at: float | None
    problems: int
    standings: tuple[ArmStanding, ...]
    pairs: tuple[Pair, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """One arm's runs of one problem: `found` at every amount, `claimed` at their ends.

    `paired` is False if another arm has no run of the problem.
    """

    problem: str
    arm: str
    found: tuple[FoundSpeedup, ...]
    claimed: FoundSpeedup
    paired: bool


@dataclass(frozen=True, slots=True)
class ArmEffort:
    """Means per run of an arm, up to the last checkpoint.

    `first_tries` counts the runs whose first step was correct; `correct` is the share of correct
    steps. `unknown` lists the axes on which some run's use is not fully known.
    """

    arm: str
    runs: int
    first_tries: int
    correct: float
    structures: float
    distance: float | None
    used: Mapping[Axis, float]
    device_s: float
    unknown: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class ArmCurve:
    """An arm's geometric mean over the problems along the axis, with its 95 % band."""

    arm: str
    at: tuple[float, ...]
    speedups: tuple[float, ...]
    band: tuple[Interval | None, ...]


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that may be compared: one environment, one precision class, labelled problems apart.

    If times are `estimated`, there are no speedups, no checkpoints and no curves. `places` are the
    amounts of the rows; efforts count up to the last. A place has a checkpoint if every arm has
    runs of one problem that reached it. Where some problems are won by algebra, `claims_without`
    leaves these out.
    """

    environment: str
    precision: Precision
    labelled: bool
    estimated: bool
    places: tuple[float, ...]
    checkpoints: tuple[Checkpoint, ...]
    claims: Checkpoint | None
    rows: tuple[ProblemRow, ...]
    efforts: tuple[ArmEffort, ...]
    curves: tuple[ArmCurve, ...]
    notes: tuple[str, ...]
    claims_without: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison. `labels` are those of the problems, each with its reason.

    `reported` are runs with verdicts of others, which are in no arm.
    """

    axis: Axis
    arms: tuple[str, ...]
    groups: tuple[RunGroup, ...]
    notes: tuple[str, ...]
    labels: Mapping[str, Mapping[str, str]]
    command: str = ""
    reported: tuple[ReportedRun, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)
