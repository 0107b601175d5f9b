"""Runs as data: what came of their steps, without the kernels themselves."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from adaexplore.core import BadInputError, Cell, Node, Status, StepKind, Timing
from adaexplore.search import traits_of

_INTERVAL_WIDTH = 3.92
"""Width of a 95 % interval of a normal distribution, in standard deviations."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step that was judged.

    `speedup`, like for like, and `speedup_eager` are 0 for one that failed; `noise` is the
    deviation of `ln` of the former, None where the interval does not say it.
    """

    id: int
    parent_id: int
    step_kind: StepKind
    origin: str
    status: Status
    speedup: float
    speedup_eager: float
    noise: float | None
    cell: Cell


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The steps of one run, in order."""

    name: str
    problem: str
    steps: tuple[RecordedStep, ...]


def recorded_run(name: str, problem: str, nodes: Iterable[Node]) -> RecordedRun:
    """A run's steps, but those that the machinery failed or nobody measured."""
    steps = [_step(node) for node in nodes]
    return RecordedRun(name, problem, tuple(step for step in steps if step))


def runs_json(runs: Sequence[RecordedRun]) -> str:
    """The text of a file of runs, a line for each step."""
    return json.dumps({"runs": [asdict(run) for run in runs]}).replace('{"id"', '\n{"id"')


def read_runs(path: Path) -> list[RecordedRun]:
    """The runs that a file of `runs_json` holds; raises `BadInputError` for any other."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return [
            RecordedRun(
                run["name"],
                run["problem"],
                tuple(RecordedStep(**{**row, "cell": tuple(row["cell"])}) for row in run["steps"]),
            )
            for run in data["runs"]
        ]
    except OSError as error:
        raise BadInputError(f"cannot read the landscape {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(
            f"{path} is no landscape; make one of runs with: "
            "adaexplore-lab simulate --landscape RUN --save FILE"
        ) from error


def _noise(timing: Timing) -> float | None:
    """Return the standard deviation of `ln` of the speedup, None where its interval has no end."""
    low, high = timing.noise_ci
    noise = math.log(high / low) / _INTERVAL_WIDTH if low > 0 else math.inf
    return noise if math.isfinite(noise) else None


def _step(node: Node) -> RecordedStep | None:
    evaluation = node.evaluation
    timing = evaluation.measured
    unjudged = evaluation.status in ("infra_error", "reported", "not_run")
    if unjudged or (evaluation.status == "passed" and not timing):
        return None
    return RecordedStep(
        id=node.id,
        parent_id=node.parent_id,
        step_kind=node.step_kind,
        origin=node.proposal.origin,
        status=evaluation.status,
        speedup=timing.speedup if timing else 0.0,
        speedup_eager=timing.speedup_eager if timing else 0.0,
        noise=_noise(timing) if timing else None,
        cell=traits_of(node).cell,
    )
