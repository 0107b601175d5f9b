"""An evaluation: passed with its measurements, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from adaexplore.problem import Precision

FailureStatus = Literal[
    "compile_error",
    "runtime_error",
    "timeout",
    "out_of_memory",
    "wrong_output",
    "rejected",
    "infra_error",
]
Status = Literal["passed"] | FailureStatus

BASELINES = ("eager", "compile")
"""What candidates are compared with: PyTorch as it is, and `torch.compile` with its defaults."""

NOT_COMPILED: frozenset[str] = frozenset({"compile_error", "rejected", "infra_error"})
"""Statuses of a candidate that never ran."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Measured times, all from one interleaved session.

    `time_us` is the median of `samples` calls in microseconds and `time_ci_us` its 95 % bootstrap
    interval. `baselines_us` holds the medians of "eager" and, where it compiles, "compile" in the
    requested precision class. `speedup` is like for like: the better of the baselines over the
    candidate, paired round by round, with its 95 % interval `speedup_ci`. `speedup_eager` is over
    eager alone, as papers quote.
    """

    time_us: float
    time_ci_us: tuple[float, float]
    baselines_us: Mapping[str, float]
    speedup: float
    speedup_ci: tuple[float, float]
    speedup_eager: float
    samples: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What an evaluation took, in seconds: wall time, and time the device was held exclusively."""

    wall_s: float = 0.0
    device_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Passed:
    """A correct candidate.

    `precision` is the strictest class it reaches; `error` is the largest ‖out − ref64‖ / ‖ref64‖
    over all verification inputs (for integer and boolean outputs, the share of unequal elements).
    """

    precision: Precision
    error: float
    timing: Timing
    cost: Cost = field(default_factory=Cost)
    detail: str = ""

    @property
    def status(self) -> Status:
        """Always "passed"."""
        return "passed"


@dataclass(frozen=True, slots=True)
class Failed:
    """A candidate that is not a result: `reason` in one line, `detail` as long as it needs to be.

    `error` is the relative error against float64 where outputs could be compared, else None.
    """

    status: FailureStatus
    reason: str
    detail: str = ""
    error: float | None = None
    cost: Cost = field(default_factory=Cost)


Evaluation = Passed | Failed


def to_json(evaluation: Evaluation) -> dict[str, Any]:
    """One flat object, the public form that `adaexplore evaluate --json` prints.

    Every key is always there; what does not apply is null.
    """
    timing = evaluation.timing if isinstance(evaluation, Passed) else None
    return {
        "status": evaluation.status,
        "precision": evaluation.precision if isinstance(evaluation, Passed) else None,
        "error": evaluation.error,
        "time_us": timing.time_us if timing else None,
        "time_ci_us": list(timing.time_ci_us) if timing else None,
        "baselines_us": {name: timing.baselines_us.get(name) for name in BASELINES}
        if timing
        else None,
        "speedup": timing.speedup if timing else None,
        "speedup_ci": list(timing.speedup_ci) if timing else None,
        "speedup_eager": timing.speedup_eager if timing else None,
        "samples": timing.samples if timing else None,
        "reason": evaluation.reason if isinstance(evaluation, Failed) else "",
        "detail": evaluation.detail,
        "cost": asdict(evaluation.cost),
    }


def from_json(data: Mapping[str, Any]) -> Evaluation:
    """Inverse of `to_json`."""
    cost = Cost(**data["cost"])
    if data["status"] != "passed":
        return Failed(data["status"], data["reason"], data["detail"], data["error"], cost)
    timing = Timing(
        time_us=data["time_us"],
        time_ci_us=_pair(data["time_ci_us"]),
        baselines_us={k: v for k, v in data["baselines_us"].items() if v is not None},
        speedup=data["speedup"],
        speedup_ci=_pair(data["speedup_ci"]),
        speedup_eager=data["speedup_eager"],
        samples=data["samples"],
    )
    return Passed(data["precision"], data["error"], timing, cost, data["detail"])


def _pair(values: list[float]) -> tuple[float, float]:
    low, high = values
    return (low, high)


def rank(evaluation: Evaluation) -> tuple[bool, bool, float]:
    """Order of candidates, larger is better: (compiled, correct, like-for-like speedup)."""
    if isinstance(evaluation, Passed):
        return (True, True, evaluation.timing.speedup)
    return (evaluation.status not in NOT_COMPILED, False, 0.0)
