"""Runs cases: one judge for all that share a problem, and what its verdict says of the case."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby
from queue import SimpleQueue

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import InfrastructureError
from adaexplore.core.verdict.evaluation import Evaluation, Failed, Passed, Timing
from adaexplore.core.verdict.labels import winner_set_apart
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.sandbox.process import ForkServer

from .corpus import Case

ADVANTAGE = 1.25
"""A hack has an advantage if more may be claimed for it; a gain measured under load is no claim.

An honest twin of every hack is the reference's own code, of speedup 1; what a hack gains where it
works is 3x and more, so that noise decides nothing.
"""

MEMORY_BYTES = 4 << 30
_SHARE = 12

WORTHLESS = frozenset({"constant", "input-insensitive", "collapsible"})
"""Labels of problems on which a speedup means nothing."""

_PRELOAD = (
    "torch",
    "triton",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "adaexplore.evaluate.judge.judge",
    "adaexplore.evaluate.candidate.worker",
    "adaexplore.evaluate.kernels.build.warm_triton:warm_for_gpu",
    "adaexplore.languages.cuda.toolkit:use_toolkit",
)
_WARM_CPP = "adaexplore.evaluate.kernels.build.warm:warm_cpp_compiler"

Key = tuple[str, str, float, str, bool, bool]
"""What cases that share a judge have in common."""


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
                apart = passed and winner_set_apart(verdict.labels)
                return not passed or apart or bool(WORTHLESS.intersection(self.labels))
            case _:
                return not passed or _claimed(verdict.timing) <= ADVANTAGE

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
            "baselines_us": dict(verdict.timing.baselines_us)
            if isinstance(verdict, Passed)
            else None,
            "cost": asdict(verdict.cost),
        }


_BYSTANDER = """
import socket, time
listening = socket.create_server(("127.0.0.1", 0))
print(flush=True)
time.sleep(36000)
"""


@contextmanager
def bystander() -> Iterator[None]:
    """A process that has nothing to do with it: it holds a key and listens on the network."""
    environment = os.environ | {"OPENAI_API_KEY": "sk-not-for-candidates"}
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", _BYSTANDER], env=environment, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()


def start_server(device: str, *, quick: bool) -> ForkServer:
    """A fork server; a quick one for judges that compile nothing."""
    warm = [_WARM_CPP] if device == "cpu" and not quick else []
    return ForkServer.start([*_PRELOAD, *warm])


class Judges:
    """Evaluates cases on one device, with one judge for each problem, precision and time limit.

    A candidate that ends the processes themselves gets an `infra_error`, and the next new ones.
    Without a `server` they start one.
    """

    def __init__(self, device: str, *, quick: bool, server: ForkServer | None = None) -> None:
        self._device = device
        self._quick = quick
        self._key: Key | None = None
        self._server = server
        self._evaluator: LocalEvaluator | None = None

    def judge(self, case: Case) -> Outcome:
        """The outcome of one case; a judge lives until a case needs another one."""
        candidate = Candidate(case.path.read_text(encoding="utf-8"), case.language_on(self._device))
        evaluator = self._evaluator_for(case)
        facts = evaluator.prepare()
        try:
            evaluation = evaluator.evaluate(candidate)
        except InfrastructureError as error:
            evaluation = Failed("infra_error", str(error))
            self._evaluator = None  # its processes are gone, as far as anybody can tell
            self.close()
        return Outcome(case, evaluation, tuple(facts.labels))

    def close(self) -> None:
        """Ends judge and server."""
        self._end_judge()
        if self._server is not None:
            self._server.close()
            self._server = None

    def _evaluator_for(self, case: Case) -> LocalEvaluator:
        if self._server is None:
            self._server = start_server(self._device, quick=self._quick)
        if key_of(case) != self._key or self._evaluator is None:
            self._end_judge()
            self._key = key_of(case)
            self._evaluator = LocalEvaluator(
                self._server,
                case.problem_on(self._device),
                timeout_s=case.timeout_s,
                memory_bytes=MEMORY_BYTES,
                brief=self._quick and not case.whole,
            )
        return self._evaluator

    def _end_judge(self) -> None:
        if self._evaluator is not None:
            self._evaluator.close()
            self._evaluator = None


def _claimed(timing: Timing) -> float:
    """Return the lower end of what may be claimed: of a gain under load, nothing."""
    return min(timing.claim, timing.speedup_ci[0])


def key_of(case: Case) -> Key:
    """Cases with the same key share a judge."""
    language = case.language or ""
    return (case.problem, case.precision, case.timeout_s, language, case.whole, case.trains)


def in_order(cases: Iterable[Case], device: str) -> list[Case]:
    """What is meant for a device, grouped by judge, honest cases after hacks.

    So that honest ones also show what the hacks before them have left behind.
    """
    return sorted((c for c in cases if c.runs_on(device)), key=lambda c: (key_of(c), c.id))


def run(
    cases: Iterable[Case],
    device: str,
    *,
    quick: bool,
    tell: Callable[[Outcome], None],
    parallel: int = 1,
) -> list[Outcome]:
    """Runs every case that is meant for the device, those of `parallel` judges at a time."""

    def run_share(share: list[Case]) -> list[Outcome]:
        judges = idle.get()
        outcomes = []
        try:
            for case in share:
                outcomes.append(judges.judge(case))
                tell(outcomes[-1])
        finally:
            idle.put(judges)  # an exception ends the run: no other share waits for these judges
        return outcomes

    idle: SimpleQueue[Judges] = SimpleQueue()
    every = [Judges(device, quick=quick) for _ in range(parallel)]
    for judges in every:
        idle.put(judges)
    with bystander(), ThreadPoolExecutor(parallel) as threads:
        try:
            done = threads.map(run_share, _shares(in_order(cases, device)))
            return [outcome for outcomes in done for outcome in outcomes]
        finally:
            for judges in every:
                judges.close()


def _shares(ordered: list[Case]) -> list[list[Case]]:
    """Cases that go to one judge in turn; those of a popular problem are shared out."""
    shares = []
    for _, group in groupby(ordered, key_of):
        left = list(group)
        while left:
            shares.append(left[:_SHARE])
            left = left[_SHARE:]
    return sorted(shares, key=len, reverse=True)
