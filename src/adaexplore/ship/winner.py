"""The winner of a run, with everything that a package is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Passed, Timing
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.run.outcome.deliver import claimed_winner
from adaexplore.store import read_run


@dataclass(frozen=True, slots=True)
class ShippedKernel:
    """A verified kernel, its problem, and the place of its verdict."""

    problem: Problem
    source: str
    verdict: Passed
    about: str
    labels: Mapping[str, str]
    environment: Environment

    def times_us(self, workload: str) -> tuple[float, float]:
        """Return the times of the kernel and of the strongest baseline, 0 if not measured."""
        by_name = {each.name: each.timing for each in self.verdict.workloads}
        timing = by_name.get(workload, None if by_name else self.verdict.timing)
        if not isinstance(timing, Timing):
            return 0.0, 0.0
        return timing.time_us, timing.baselines_us[timing.strongest]

    def verdicts(self) -> dict[str, Any]:
        """Return the verdict, and the machine that it is from, as plain data."""
        return {
            "about": self.about,
            "problem": self.problem.name,
            "problem_digest": self.problem.digest,
            "precision": self.problem.precision,
            "labels": dict(self.labels),
            "verdict": evaluation_to_json(self.verdict),
            "workloads": {w.name: list(self.times_us(w.name)) for w in self.problem.workloads},
            "environment": self.environment.to_json(),
        }


def winner_of(run: Path) -> ShippedKernel:
    """Return the winner of a run; raise `BadInputError` where nothing can be shipped."""
    with read_run(run) as directory:
        record = directory.store.run()
        kernel = claimed_winner(directory.store, run)
    if record.reported_by or not isinstance(kernel.verdict, Passed):
        raise BadInputError(f"{run}: nobody judged its kernel here; run adaexplore evaluate on it")
    problem = record.problem
    if problem.target:
        raise BadInputError(
            f"{run}: its kernel never ran on a GPU, only on an interpreter; search on a GPU first"
        )
    if problem.access.modules or problem.access.reads:
        first = [*(file for _, file in problem.access.modules), *problem.access.reads][0]
        raise BadInputError(
            f"{run}: the problem needs {first}, which a package has not; put its code into "
            f"{problem.access.file or 'the problem'} and search again"
        )
    return ShippedKernel(
        problem, kernel.source, kernel.verdict, kernel.about, kernel.labels, record.environment
    )
