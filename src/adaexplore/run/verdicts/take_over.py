"""Verdicts taken over from a cache that runs share, in place of judging a candidate again."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import adaexplore
from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.evaluator import Evaluator, TellsNews, TriesUses
from adaexplore.core.protocols.verdicts import SharedVerdicts
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Cost, Estimate, Evaluation, Failed, Passed, Timing
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.uses import Use
from adaexplore.evaluate.kernels.build.compile_cache import own_folder
from adaexplore.store.verdicts import open_verdicts

_JUDGE = ("core", "evaluate", "languages", "sandbox")
"""Folders of this package that a verdict is made by."""
VARIABLES = (
    *("CC", "CXX", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"),
    *("OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT"),
    *("MKL_NUM_THREADS", "TRITON_PTXAS_PATH", "TRITON_LIBCUDA_PATH"),
)
"""Environment variables that a worker gets and that can change a verdict or a time."""
_LASTING = ("compile_error", "wrong_output")
_OF_THE_MOMENT = re.compile(
    "No space left|quota exceeded|Too many open files|temporarily unavailable|Killed|signal|"
    "[Oo]ut of memory|Cannot allocate|allocate memory|bad_alloc"
)


@runtime_checkable
class RecallsVerdicts(Protocol):
    """An evaluator that may answer with a verdict of an earlier session."""

    def recall(self, candidate: Candidate) -> Evaluation:
        """Return a verdict beside every baseline, from the cache or of a new evaluation."""
        ...


def judged(evaluator: Evaluator, candidate: Candidate) -> Evaluation:
    """Return a verdict beside every baseline; one from a cache where the evaluator has one."""
    if isinstance(evaluator, RecallsVerdicts):
        return evaluator.recall(candidate)
    return evaluator.evaluate(candidate, again=True)


class TakingOver:
    """An `Evaluator` that first looks for a verdict in a shared cache, and adds its own to it.

    `evaluate` with `again` confirms, so it always measures. A verdict that was taken over says so
    and has no cost; no parent was timed beside it.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        verdicts: SharedVerdicts,
        problem: Problem,
        settings: Config,
        environment: Environment,
    ) -> None:
        self._evaluator = evaluator
        self._verdicts = verdicts
        self._place = place_of(problem, settings, environment)
        self._codes: dict[str, str] = {}  # the first candidate with each compiled code

    def prepare(self) -> ReferenceFacts:
        """See `Evaluator.prepare`."""
        return self._evaluator.prepare()

    def evaluate(
        self, candidate: Candidate, parent: Candidate | None = None, *, again: bool = False
    ) -> Evaluation:
        """See `Evaluator.evaluate`."""
        key = self._key(candidate, thorough=again)
        known = None if again else self._verdicts.find(key)
        return known or self._keep(key, candidate, parent, again=again)

    def recall(self, candidate: Candidate) -> Evaluation:
        """See `RecallsVerdicts.recall`."""
        key = self._key(candidate, thorough=True)
        return self._verdicts.find(key) or self._keep(key, candidate, None, again=True)

    def try_uses(self, candidate: Candidate) -> tuple[Use, ...]:
        """See `TriesUses.try_uses`."""
        inner = self._evaluator
        return inner.try_uses(candidate) if isinstance(inner, TriesUses) else ()

    def listen(self, tell: Callable[[str], None]) -> None:
        """See `TellsNews.listen`."""
        if isinstance(self._evaluator, TellsNews):
            self._evaluator.listen(tell)

    def close(self) -> None:
        """See `Evaluator.close`."""
        self._evaluator.close()

    def _key(self, candidate: Candidate, *, thorough: bool) -> str:
        """Return the key of a verdict; `thorough` is one beside every baseline."""
        parts = [self._place, reference_of(self.prepare()), candidate.digest, thorough]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _keep(
        self, key: str, candidate: Candidate, parent: Candidate | None, *, again: bool
    ) -> Evaluation:
        evaluation = self._evaluator.evaluate(candidate, parent, again=again)
        if lasts(evaluation) and (again or self._is_own_time(candidate, evaluation)):
            self._verdicts.keep(key, _alone(evaluation))
        return evaluation

    def _is_own_time(self, candidate: Candidate, evaluation: Evaluation) -> bool:
        """Return False where the time may be that of another candidate with the same code."""
        if not isinstance(evaluation, Passed) or evaluation.descriptor is None:
            return True
        code = evaluation.descriptor.code
        return not code or self._codes.setdefault(code, candidate.digest) == candidate.digest


@contextmanager
def taking_over(
    evaluator: Evaluator, problem: Problem, settings: Config, environment: Environment
) -> Iterator[Evaluator]:
    """Give the evaluator, with the cache of the settings in front of it if they name one."""
    if not settings.evaluation_cache:
        yield evaluator
        return
    verdicts = open_verdicts(place_of_cache(settings.evaluation_cache))
    try:
        yield TakingOver(evaluator, verdicts, problem, settings, environment)
    finally:
        verdicts.close()


def place_of_cache(place: str) -> str:
    """Return the file or the URL of a cache.

    Raises `BadInputError` where the user's own could be written by candidates or other users.
    """
    if place != "on":
        return place
    folder = own_folder("evaluations")
    if folder is None:
        raise BadInputError(
            "evaluation_cache = on: ~/.cache/adaexplore cannot be kept from candidates and other "
            "users on this machine (that needs Landlock, and a folder that only you may write to); "
            "name a file or a database, or turn it off"
        )
    return str(folder / "verdicts.db")


def place_of(problem: Problem, settings: Config, environment: Environment) -> dict[str, Any]:
    """Return all that a verdict depends on, but for the candidate and the reference's facts.

    Devices of one machine that are alike share verdicts.
    """
    machine = environment.to_json()
    del machine["commit"]  # the digest of the judge's source says more
    return {
        "problem": problem.digest,
        "checks": asdict(problem.checks),
        "judge": _judge_digest(),
        "machine": machine | {"device": problem.device.partition(":")[0]},
        "packages": installed(),
        "variables": {name: os.environ.get(name) for name in VARIABLES},
        "limits": [settings.timeout_s, settings.memory_gb],
        "scope": settings.evaluation_scope,
    }


def reference_of(facts: ReferenceFacts) -> list[Any]:
    """Return the facts of a reference that verdicts depend on, and that chance or room decides."""
    sets = [facts.input_sets, *(workload.input_sets for workload in facts.workloads)]
    return [sets, sorted(facts.baselines_us), facts.compiles, sorted(facts.variants.items())]


def lasts(evaluation: Evaluation) -> bool:
    """Return True for a verdict that another session would reach too.

    Failures count where the text of the candidate decides them. Others are of the moment: limits of
    time and memory, accounts of CPU time, processes that end, faults of a driver.
    """
    if isinstance(evaluation, Failed):
        said = evaluation.reason + evaluation.detail
        return evaluation.status in _LASTING and not _OF_THE_MOMENT.search(said)
    timings = [evaluation.timing, *(workload.timing for workload in evaluation.workloads)]
    quiet = all(isinstance(timing, Estimate) or not timing.is_noisy for timing in timings)
    return quiet and "baselines-disturbed" not in evaluation.labels


def _alone(evaluation: Evaluation) -> Evaluation:
    """Return an evaluation at no cost, without the comparison with a parent."""
    if isinstance(evaluation, Failed):
        return replace(evaluation, cost=Cost())
    workloads = tuple(
        replace(workload, timing=_without_parent(workload.timing))
        for workload in evaluation.workloads
    )
    timing = _without_parent(evaluation.timing)
    return replace(evaluation, cost=Cost(), timing=timing, workloads=workloads)


def _without_parent(timing: Timing | Estimate) -> Timing | Estimate:
    return timing if isinstance(timing, Estimate) else replace(timing, parent=None)


@cache
def _judge_digest() -> str:
    """Return a hash of the source that judges."""
    root = Path(adaexplore.__file__).parent
    found = hashlib.sha256()
    for file in sorted(file for folder in _JUDGE for file in (root / folder).rglob("*.py")):
        found.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return found.hexdigest()


@cache
def installed() -> Mapping[str, str]:
    """Return the versions of all installed packages, any of which a reference may import."""
    return {each.name: each.version for each in distributions() if each.name != "adaexplore"}
