"""What a comparison of searches says: plain data, which renderers draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from adaexplore.core.problem import Precision
from adaexplore.report.averages import Averages
from adaexplore.report.compare.resample import Interval
from adaexplore.report.compare.traces import Axis

LEAST_PROBLEMS = 6
"""What a 95 % interval takes at least: that five of five agree has odds of 1 in 16 by chance."""

Decision = Literal["faster", "slower", "undecided", "too few"]


@dataclass(frozen=True, slots=True)
class FoundSpeedup:
    """What an arm's runs of one problem found by then.

    `speedup` is the geometric mean of the `runs` that went so far, one in which nothing was
    correct counting as 0.1; None where there is no run. `correct` of them had a correct kernel.
    `noise` is the standard error of `ln speedup` that comes from the measurements.
    """

    speedup: float | None
    runs: int = 0
    correct: int = 0
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class ArmStanding:
    """What an arm found by then over all problems that every arm has.

    `speedup` is the geometric mean, a run without a correct kernel counting as 0.1, with its 95 %
    interval. `averages` are those of a campaign's tables, over the problems' speedups.
    """

    arm: str
    speedup: float
    interval: Interval | None
    averages: Averages


@dataclass(frozen=True, slots=True)
class Pair:
    """An arm over the first one by then: the geometric mean of the ratios, problem by problem.

    A win is a ratio above 1 by more than the measurements' 95 % intervals and 1 % explain.
    """

    arm: str
    over: str
    ratio: float
    interval: Interval | None
    samples: int
    wins: int
    ties: int
    losses: int

    @property
    def decision(self) -> Decision:
        """Whether the interval says which is faster."""
        if self.interval is None or self.samples < LEAST_PROBLEMS:
            return "too few"
        low, high = self.interval
        return "faster" if low > 1 else "slower" if high < 1 else "undecided"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everybody when so much was used; over `problems` that every arm has with runs so long.

    Where `at` is None it is what the runs claim at their ends, however long they are.
    """

    at: float | None
    problems: int
    standings: tuple[ArmStanding, ...]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """One arm's runs of one problem: `found` at every place, `claimed` at their ends.

    Not `paired` where another arm has no run of it.
    """

    problem: str
    arm: str
    found: tuple[FoundSpeedup, ...]
    claimed: FoundSpeedup
    paired: bool


@dataclass(frozen=True, slots=True)
class ArmEffort:
    """What an arm's runs were like until the last checkpoint; means are per run.

    `first_tries` of the `runs` began with a correct kernel, `correct` is the share of correct
    steps. Of what is `unknown`, runs used more than anybody knows.
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
    """An arm's geometric mean over the problems, from step to step, with its 95 % band."""

    arm: str
    at: tuple[float, ...]
    speedups: tuple[float, ...]
    band: tuple[Interval | None, ...]


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that may be compared: one environment, one precision class, labelled problems apart.

    Where times are `estimated` there are no speedups, and so neither checkpoints nor curves.
    `places` are the amounts at which rows say what was found, up to the last of which efforts are
    counted; a place has a checkpoint where every arm has runs of a problem that went so far.
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything a renderer needs. `labels` say of problems why their speedups are worth less."""

    axis: Axis
    arms: tuple[str, ...]
    groups: tuple[RunGroup, ...]
    notes: tuple[str, ...]
    labels: Mapping[str, Mapping[str, str]]
    command: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        data = asdict(self)
        for group, own in zip(data["groups"], self.groups, strict=True):
            for checkpoint, ours in zip(group["checkpoints"], own.checkpoints, strict=True):
                for plain, pair in zip(checkpoint["pairs"], ours.pairs, strict=True):
                    plain["decision"] = pair.decision
        return data
