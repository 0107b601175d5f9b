"""Validation of tasks: they must run, have a meaningful output, and be new."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from adaexplore.problems import run_confined, structure_of
from adaexplore.sandbox import ForkServer
from adaexplore_lab.synthesize.task import SyntheticTask

MEANINGLESS = ("constant", "input-insensitive", "weight-insensitive", "nondeterministic")
"""Labels of the evaluator's (see `evaluate.probes`) with which a task teaches nothing."""


@dataclass(frozen=True, slots=True)
class Validated:
    """Result of validating a task: `why` it is refused in one line, empty if it is kept.

    `structure` is its graph's, empty where it cannot be traced; `labels` are the evaluator's that
    it is kept with all the same; `wall_s` is what looking at it took.
    """

    task: SyntheticTask
    why: str = ""
    structure: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    wall_s: float = 0.0


class Validator:
    """Looks at tasks one after the other, each in processes of its own.

    `examine` is the evaluator's job that runs a reference and labels it; the server should have it
    preloaded. `benchmarks` and `known` map structures that are not wanted (again) to what has them;
    a task that is kept is known from then on.
    """

    def __init__(
        self,
        server: ForkServer,
        examine: str,
        *,
        benchmarks: Mapping[str, str],
        known: Mapping[str, str] | None = None,
    ) -> None:
        self._server = server
        self._examine = examine
        self._benchmarks = benchmarks
        self._known = dict(known or {})

    def check(self, task: SyntheticTask) -> Validated:
        """Validate a task; a task that is kept counts as known from then on."""
        started = time.monotonic()
        found = self._checked(task)
        if not found.why:
            self._known[found.structure] = task.name
        return replace(found, wall_s=time.monotonic() - started)

    def _checked(self, task: SyntheticTask) -> Validated:
        traced = structure_of(self._server, task.name, task.source)
        if traced["why"]:
            return Validated(task, traced["why"])
        if not task.ops:
            task = replace(task, ops=tuple(traced["ops"]))
        found = Validated(task, self._objection(traced), traced["structure"])
        if found.why:
            return found
        problem = task.problem(language="triton", device="cpu")
        examined = run_confined(self._server, self._examine, {"problem": problem.to_json()})
        labels = examined["facts"]["labels"]
        bad = [f"{label}: {why}" for label, why in labels.items() if label in MEANINGLESS]
        return replace(found, why=examined["why"] or "; ".join(bad[:1]), labels=labels)

    def _objection(self, traced: Mapping[str, object]) -> str:
        """Return the objection to a task that its graph alone gives, "" without one."""
        structure, unused = str(traced["structure"]), traced["unused"]
        if not traced["ops"]:
            return "it computes nothing"
        if isinstance(unused, list) and unused:
            return f"its output does not depend on {unused[0]}"
        if structure in self._benchmarks:
            return f"it has the structure of {self._benchmarks[structure]}"
        if structure in self._known:
            return f"it has the structure of {self._known[structure]}"
        return ""
