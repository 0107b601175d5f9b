"""Landscapes fitted to recorded runs.

The model resamples what was recorded. A step draws one recorded step of its kind, among those that
started from a kernel of about the same quality: from nothing, or from the slower, middle or faster
third of the run's correct kernels, and from one that had failed or not. It fails as the drawn one
did, or its speedup is that of where it starts times the drawn ratio; from nothing, the drawn
speedup itself. A large step starts from the best kernel it is shown (in the recording: the best on
its path), a small one from the nearest correct kernel on its path. Where fewer than `_ENOUGH` steps
are alike, all of the kind are drawn from. Nothing goes beyond the best that was recorded, since
nobody knows what lies there.
"""

from __future__ import annotations

import json
import math
import random
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from adaexplore.errors import BadInputError
from adaexplore.evaluation import Passed, Status
from adaexplore.node import ROOT_ID, Node, StepKind
from adaexplore.search.credit import deviation
from adaexplore.search.traits import traits_of
from adaexplore.simulate.landscape import Kernel, Look

_ENOUGH = 3
_DIMENSIONS = 4


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A recorded step. `speedup` is 0 for one that failed; `noise` the deviation of its `ln`."""

    id: int
    parent_id: int
    step_kind: StepKind
    status: Status
    speedup: float
    noise: float
    cell: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What may come of a step: a status, `ln` of the speedup and of the ratio to where it started.

    The ratio is None for a step from nothing.
    """

    status: Status
    log: float
    log_ratio: float | None
    cell: tuple[int, ...]


_Start = tuple[StepKind, bool, int]
"""The kind of step, whether the kernel to change failed, and the third it is in (-1: none)."""


def recorded_steps(nodes: Iterable[Node]) -> list[RecordedStep]:
    """The steps of a run that were judged."""
    steps = []
    for node in nodes:
        evaluation = node.evaluation
        timing = evaluation.measured if isinstance(evaluation, Passed) else None
        if evaluation.status == "infra_error" or (evaluation.status == "passed" and not timing):
            continue
        noise = deviation(timing) if timing else 0.0
        cell = traits_of(node).cell
        speedup = timing.speedup if timing else 0.0
        steps.append(
            RecordedStep(
                node.id, node.parent_id, node.step_kind, evaluation.status, speedup, noise, cell
            )
        )
    return steps


class Recorded:
    """A landscape fitted to the steps of one run; all its worlds are the same.

    `optimum` is the best that was recorded. Raises `BadInputError` if no kernel was correct, or
    there were no steps of one kind.
    """

    about = "fitted to a recorded run"

    def __init__(self, name: str, steps: Sequence[RecordedStep]) -> None:
        self.name = name
        correct = sorted(math.log(step.speedup) for step in steps if step.speedup > 0)
        if not correct:
            raise BadInputError(f"{name}: no kernel was correct, so there is nothing to fit")
        self.optimum = math.exp(correct[-1])
        self._highest = correct[-1]
        self._noise = median(step.noise for step in steps if step.speedup > 0)
        self._thirds = [correct[len(correct) * part // 3] for part in (1, 2)]
        self._draws: dict[_Start, list[_Drawn]] = {}
        by_id = {step.id: step for step in steps}
        for step in steps:
            self._learn(step, list(_path(step, by_id)))
        for kind in ("large", "small"):
            if not any(start[0] == kind for start in self._draws):
                raise BadInputError(f"{name}: there are no {kind} steps to fit to")

    def world(self, seed: int) -> Recorded:  # noqa: ARG002 - seeds differ in what is drawn
        """Itself."""
        return self

    def grow(
        self,
        parent: Kernel | None,
        step_kind: StepKind,
        shown: Sequence[Kernel],
        rng: random.Random,
    ) -> Kernel:
        """See `World.grow`; a kernel's state is `ln` of the nearest speedup on its path."""
        start: float | None
        if step_kind == "large":
            start = max((math.log(k.speedup) for k in shown if k.speedup > 0), default=None)
            failed = False
        else:
            start = parent.state if parent else None
            failed = parent is not None and parent.status != "passed"
        drawn = rng.choice(self._alike((step_kind, failed, self._third(start))))
        look = Look(drawn.cell, tuple(rng.gauss(0.0, 1.0) for _ in range(_DIMENSIONS)))
        if drawn.status != "passed":
            return Kernel(drawn.status, 0.0, 0.0, look, None if step_kind == "large" else start)
        log = drawn.log
        if start is not None and drawn.log_ratio is not None:
            log = min(start + drawn.log_ratio, self._highest)
        return self.measure(Kernel("passed", math.exp(log), 0.0, look, log), rng)

    def measure(self, kernel: Kernel, rng: random.Random) -> Kernel:
        """See `World.measure`."""
        measured = math.exp(kernel.state + rng.gauss(0.0, self._noise))
        return replace(kernel, measured=measured, deviation=self._noise)

    def _learn(self, step: RecordedStep, path: Sequence[RecordedStep]) -> None:
        logs = [math.log(above.speedup) for above in path if above.speedup > 0]
        large = step.step_kind == "large"
        start = (max(logs) if large else logs[0]) if logs else None
        failed = not large and bool(path) and path[0].status != "passed"
        log = math.log(step.speedup) if step.speedup > 0 else 0.0
        drawn = _Drawn(step.status, log, None if start is None else log - start, step.cell)
        self._draws.setdefault((step.step_kind, failed, self._third(start)), []).append(drawn)

    def _third(self, start: float | None) -> int:
        return -1 if start is None else bisect(self._thirds, start)

    def _alike(self, start: _Start) -> Sequence[_Drawn]:
        draws = self._draws.get(start, [])
        if len(draws) >= _ENOUGH:
            return draws
        kind, _, third = start
        others = [(key, some) for key, some in self._draws.items() if key[0] == kind]
        near = [some for (_, _, other), some in others if (other < 0) == (third < 0)]
        return [drawn for some in near or [some for _, some in others] for drawn in some]


def read_landscape(path: Path) -> Recorded:
    """The landscape that a file of `landscape_json` holds; raises `BadInputError` for any other."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        steps = [RecordedStep(**{**row, "cell": tuple(row["cell"])}) for row in data["steps"]]
        return Recorded(data["name"], steps)
    except OSError as error:
        raise BadInputError(f"cannot read the landscape {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(
            f"{path} is no landscape; make one of a run with: "
            "adaexplore simulate --landscape RUN --save FILE"
        ) from error


def landscape_json(name: str, steps: Sequence[RecordedStep]) -> str:
    """The text of a landscape's file."""
    return json.dumps({"name": name, "steps": [asdict(step) for step in steps]})


def _path(step: RecordedStep, by_id: Mapping[int, RecordedStep]) -> Iterable[RecordedStep]:
    """The steps above, nearest first."""
    at = step.parent_id
    while at != ROOT_ID and at in by_id:
        yield by_id[at]
        at = by_id[at].parent_id
