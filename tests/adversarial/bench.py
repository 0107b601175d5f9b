"""Runs cases: one judge for all that share a problem, and what its verdict says of the case."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby

from adaexplore.candidate import Candidate
from adaexplore.evaluate.local import LocalEvaluator
from adaexplore.evaluation import Evaluation, Passed
from adaexplore.sandbox.process import ForkServer

from .corpus import ROOT, Case, language_of

ADVANTAGE = 1.25
"""A hack has an advantage if the lower end of its speedup's interval is above this.

An honest twin of every hack is the reference's own code, of speedup 1; what a hack gains where it
works is 2x and more, so that noise decides nothing.
"""

MEMORY_BYTES = 4 << 30

WORTHLESS = frozenset({"constant", "input-insensitive", "collapsible"})
"""Labels of problems on which a speedup means nothing."""

_PRELOAD = (
    "torch",
    "triton",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "adaexplore.evaluate.judge",
    "adaexplore.evaluate.worker",
)
_WARM_CPP = "adaexplore.evaluate.warm:warm_cpp_compiler"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case, the evaluator's verdict on it, and whether that is the verdict it must get."""

    case: Case
    evaluation: Evaluation
    labels: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether the evaluator was neither fooled nor unjust; never where it broke down."""
        verdict = self.evaluation
        if verdict.status == "infra_error":
            return False
        passed = isinstance(verdict, Passed)
        match self.case.expect:
            case "accepted":
                return passed
            case "refused":
                return not passed
            case "labelled":
                return not passed or bool(WORTHLESS.intersection(self.labels))
            case _:
                return not passed or verdict.timing.speedup_ci[0] <= ADVANTAGE

    @property
    def speedup(self) -> float | None:
        """The measured speedup, None where it was refused."""
        return self.evaluation.timing.speedup if isinstance(self.evaluation, Passed) else None

    @property
    def reason(self) -> str:
        """The verdict's reason in one line; empty for one that passed."""
        return "" if isinstance(self.evaluation, Passed) else self.evaluation.reason

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        verdict = self.evaluation
        return {
            "case": self.case.id,
            "problem": self.case.problem,
            "expect": self.case.expect,
            "right": self.right,
            "status": verdict.status,
            "reason": self.reason,
            "detail": verdict.detail,
            "labels": list(self.labels),
            "speedup": self.speedup,
            "speedup_ci": verdict.timing.speedup_ci if isinstance(verdict, Passed) else None,
            "cost": asdict(verdict.cost),
        }


@contextmanager
def running_server(device: str, *, quick: bool) -> Iterator[ForkServer]:
    """A fork server. A quick one compiles nothing and measures briefly."""
    preload = list(_PRELOAD)
    if quick:
        path = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "preload"), path]))
        preload.append("quickly:judge_quickly")
    elif device == "cpu":
        preload.append(_WARM_CPP)
    server = ForkServer.start(preload)
    try:
        yield server
    finally:
        server.close()


class Judges:
    """Evaluates cases on one device, with one judge for each problem, precision and time limit."""

    def __init__(self, server: ForkServer, device: str) -> None:
        self._server = server
        self._device = device
        self._key: tuple[str, str, float] | None = None
        self._evaluator: LocalEvaluator | None = None

    def judge(self, case: Case) -> Outcome:
        """The outcome of one case; a judge lives until a case needs another one."""
        key = key_of(case)
        if key != self._key or self._evaluator is None:
            self.close()
            self._evaluator = LocalEvaluator(
                self._server,
                case.problem_on(self._device),
                timeout_s=case.timeout_s,
                memory_bytes=MEMORY_BYTES,
            )
            self._key = key
        facts = self._evaluator.prepare()
        source = case.path.read_text(encoding="utf-8")
        evaluation = self._evaluator.evaluate(Candidate(source, language_of(self._device)))
        return Outcome(case, evaluation, tuple(facts.get("labels", ())))

    def close(self) -> None:
        """Ends the judge."""
        if self._evaluator is not None:
            self._evaluator.close()
            self._evaluator = None


def key_of(case: Case) -> tuple[str, str, float]:
    """Cases with the same key share a judge; honest ones after hacks, to see what those leave."""
    return (case.problem, case.precision, case.timeout_s)


def run(
    cases: Iterable[Case], device: str, *, quick: bool, tell: Callable[[Outcome], None]
) -> list[Outcome]:
    """Runs every case that is meant for the device, grouped by judge, hacks first."""
    chosen = sorted((c for c in cases if c.runs_on(device)), key=lambda c: (key_of(c), c.id))
    outcomes = []
    with running_server(device, quick=quick) as server:
        for _, group in groupby(chosen, key=key_of):
            judges = Judges(server, device)
            try:
                for case in group:
                    outcomes.append(judges.judge(case))
                    tell(outcomes[-1])
            finally:
                judges.close()
    return outcomes
