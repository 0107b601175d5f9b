"""The processes that judge on one machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, Protocol

from adaexplore.core import codec
from adaexplore.core.environment import Environment, Isolation
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.evaluator import Evaluator
from adaexplore.core.settings.config import Config
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.languages import DIALECTS
from adaexplore.sandbox.gpus import alone
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.process import ForkServer
from adaexplore.sandbox.requirements import require_versions

_TRITON = (
    "triton",
    "adaexplore.evaluate.kernels.build.warm_triton:warm_for_gpu",
    "adaexplore.evaluate.timing.turnstile.warm:warm_for_gpu",
)
PRELOAD = (
    "torch",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torch.export",
    "adaexplore.evaluate.judge.judge",
    "adaexplore.evaluate.candidate.worker",
    "adaexplore.propose.compiler.job",
    *(_TRITON if find_spec("triton") else ()),  # torch for CPUs comes without it
)
PRELOAD_OFFLINE = (
    "torch",
    "triton",
    "adaexplore.evaluate.offline.judge",
    "adaexplore.evaluate.offline.worker",
    "adaexplore.evaluate.kernels.build.warm_triton:warm_for_targets",
)
_DESCRIBE = "adaexplore.evaluate.timing.environment:describe"
_DESCRIBE_S = 120.0
_IN_FORCE = "adaexplore.sandbox.walls.isolation:in_force"


def start_server(problem: Problem) -> ForkServer:
    """A fork server for a problem, and for all of its language and with a target if it has one.

    Raises `BadInputError` where the language lacks what it needs.
    """
    dialect = DIALECTS[problem.language]
    require_versions(triton="triton" in dialect.imports)
    lacking = _function(dialect.lacking)() if dialect.lacking else None
    if lacking:
        raise BadInputError(f"--language {dialect.name}: {lacking}")
    preload = PRELOAD_OFFLINE if problem.target else PRELOAD
    return ForkServer.start([*preload, *dialect.preload])


def evaluator_on(
    server: ForkServer, problem: Problem, settings: Config, *, beside: int = 0
) -> Evaluator:
    """Return an evaluator on a server that others may share; one thread uses it at a time.

    It is the one after `beside` others of the same problem.
    """
    return kind_of_evaluator(problem)(
        server,
        problem,
        timeout_s=settings.timeout_s,
        memory_bytes=int(settings.memory_gb * 2**30),
        beside=beside,
    )


def kind_of_evaluator(problem: Problem) -> type[LocalEvaluator]:
    """Return the class of the evaluators of a problem."""
    return OfflineEvaluator if problem.target else LocalEvaluator


class RunJob(Protocol):
    """Runs jobs beside the judge of a problem, on its device; see `sandbox.jobs.run_job`."""

    def __call__(
        self,
        entry: str,
        request: Mapping[str, Any],
        timeout_s: float,
        *,
        confined: Literal["cpu", "gpu"] | None = None,
        readable: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Run a job and return its result."""
        ...


def jobs_on(server: ForkServer, problem: Problem) -> RunJob:
    """Return a function that runs jobs for a problem on a server."""

    def run(
        entry: str,
        request: Mapping[str, Any],
        timeout_s: float,
        *,
        confined: Literal["cpu", "gpu"] | None = None,
        readable: Sequence[str] = (),
    ) -> dict[str, Any]:
        return run_job(
            server,
            entry,
            request,
            timeout_s,
            environment=alone(problem.device)[1],
            confined=confined,
            readable=readable,
        )

    return run


def _function(entry: str) -> Callable[[], str | None]:
    module, _, name = entry.partition(":")
    function: Callable[[], str | None] = getattr(import_module(module), name)
    return function


def describe(server: ForkServer, problem: Problem) -> Environment:
    """Describe the machine, the isolation of candidates and the language's own compiler.

    Raises `BadInputError` where the device or the compiler cannot be used.
    """
    kind: Literal["cpu", "gpu"] = "cpu" if problem.device == "cpu" else "gpu"
    found = run_job(server, _DESCRIBE, {"device": problem.device}, _DESCRIBE_S)
    if found["unusable"]:
        raise BadInputError(found["unusable"])
    environment = Environment.from_json(found["environment"])
    isolation = run_job(server, _IN_FORCE, {}, _DESCRIBE_S, confined=kind)
    environment = replace(environment, isolation=codec.read(Isolation, isolation))
    dialect = DIALECTS[problem.language]
    if dialect.trial is None:
        return environment
    capability = {"compute_capability": environment.compute_capability}
    hidden = alone(problem.device)[1]
    tried = run_job(
        server, dialect.trial, capability, _DESCRIBE_S, environment=hidden, confined=kind
    )
    if tried["unusable"]:
        raise BadInputError(f"--language {dialect.name}: {tried['unusable']}")
    return replace(environment, **tried["versions"])
