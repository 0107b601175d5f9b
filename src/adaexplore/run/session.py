"""From options to a problem and the processes that work on it."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from adaexplore import problems
from adaexplore.core.candidate import Candidate
from adaexplore.core.config import Config
from adaexplore.core.environment import Environment, Isolation
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Language, Problem, TargetName
from adaexplore.core.protocols.evaluator import Evaluator
from adaexplore.core.protocols.proposer import Proposer
from adaexplore.evaluate.judge.local import LocalEvaluator
from adaexplore.evaluate.judge.pool import EvaluatorPool, evaluators_for
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.languages import DIALECTS
from adaexplore.propose.tuner.proposer import ORIGIN as TUNER
from adaexplore.propose.tuner.proposer import Tuner
from adaexplore.run.published_judge import beside_published
from adaexplore.run.remembering import remembering
from adaexplore.sandbox.gpus import alone
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.process import ForkServer, WorkerDiedError
from adaexplore.sandbox.requirements import require_versions
from adaexplore.sandbox.watchdog import LimitExceededError

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
DEFAULT_TARGET: TargetName = "sm_90"
INTERRUPTED = 130  # 128 + SIGINT, the shells' convention
_FITS = "adaexplore.evaluate.offline.fits:job"
_FITS_S = 60.0
_DESCRIBE = "adaexplore.evaluate.timing.environment:describe"
_DESCRIBE_S = 120.0
_IN_FORCE = "adaexplore.sandbox.walls.isolation:in_force"
_CORES_A_JOB = 2  # a compiler's: with less, several would run into their time limits together
_JOBS = threading.Semaphore(max(len(os.sched_getaffinity(0)) // _CORES_A_JOB, 1))


@dataclass(frozen=True, slots=True)
class Setup:
    """The device, the language and the target of a problem, which fit together."""

    device: str
    language: Language
    target: TargetName | None


def setup_of(config: Config) -> Setup:
    """Return the setup that the options describe.

    Raises `BadInputError` for options that do not fit together, or not this machine.
    """
    device = device_of("cpu" if config.device is None and config.target else config.device)
    on_gpu = device != "cpu"
    language = config.language or ("triton" if on_gpu or config.target else "cpp")
    dialect = DIALECTS[language]
    if dialect.on_gpu != on_gpu and not dialect.offline:
        needs = "a GPU (--device cuda)" if dialect.on_gpu else "cpu (--device cpu)"
        raise BadInputError(
            f"--language {language} does not run on --device {device}: {language} needs {needs}"
        )
    target = target_of(config.target, device, language)
    if config.require_custom and device == "cpu" and target is None:
        raise BadInputError(
            "--require-custom needs a GPU (--device cuda), or Triton without one (--target)"
        )
    if config.precision == "tf32" and device == "cpu" and target is None:
        raise BadInputError(
            "--precision tf32: there is no TF32 on --device cpu; take fp32 or half, or a GPU "
            "(--device cuda)"
        )
    return Setup(device, language, target)


def load_problem(path: Path, config: Config) -> Problem:
    """Load the problem in a file.

    Raises `BadInputError` for a file that cannot be used, and as `setup_of` does.
    """
    setup = setup_of(config)
    return problems.load_problem(
        path,
        device=setup.device,
        language=setup.language,
        checks=config.checks,
        seed=config.problem_seed,
        mode=config.mode,
        target=setup.target,
        allow=config.allow,
        definition=config.definition,
        workloads=config.workloads,
        timed=config.timed,
    )


def target_of(target: TargetName | None, device: str, language: Language) -> TargetName | None:
    """Return the architecture to compile for on the CPU; None where a GPU runs the kernels."""
    if target and device != "cpu":
        raise BadInputError(
            f"--target {target}: on --device {device} kernels are compiled for that GPU; leave it "
            "out, or judge without a GPU by --device cpu"
        )
    offline = [name for name, dialect in DIALECTS.items() if dialect.offline]
    if target and language not in offline:
        raise BadInputError(f"--target {target}: only --language {', '.join(offline)} have one")
    if device != "cpu" or language not in offline:
        return None
    missing = [name for name in ("triton", "numpy") if find_spec(name) is None]
    if missing:
        raise BadInputError(
            f"--language {language} --device cpu: {' and '.join(missing)} cannot be imported; "
            f"pip install {' '.join(missing)}"
        )
    return target or DEFAULT_TARGET


@dataclass(frozen=True, slots=True)
class Session:
    """Running processes for one problem; several threads may use them.

    `server` is None where the evaluator is the user's own and nothing else needs a process.
    """

    server: ForkServer | None
    evaluator: Evaluator
    environment: Environment

    def compiler(self, settings: Config) -> Proposer:
        """The proposer that needs no model."""
        from adaexplore.propose.compiler.proposer import CompilerProposer

        def job(entry: str, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
            device, environment = alone(request["problem"]["device"])
            problem = request["problem"] | {"device": device}
            with _JOBS:
                return run_job(
                    self._server,
                    entry,
                    request | {"problem": problem},
                    timeout_s,
                    environment=environment,
                )

        return CompilerProposer(job, timeout_s=settings.propose_timeout_s)

    @property
    def _server(self) -> ForkServer:
        if self.server is None:
            raise BadInputError("this run has no worker processes: its evaluator is the user's own")
        return self.server

    def tuning(self, problem: Problem) -> dict[str, Proposer]:
        """The proposer of variants, which Triton compiles for the GPU before they are proposed.

        Not those of a generator, whose own code would run for each of them.
        """
        capability = self.environment.compute_capability
        dialect = DIALECTS[problem.language]
        is_compiled = dialect.offline and dialect.generator is None
        if not is_compiled or problem.device == "cpu" or not capability:
            return {TUNER: Tuner()}
        numbers = [int(part) for part in capability.split(".")]

        def fits(candidate: Candidate) -> bool:
            request = {
                "problem": problem.to_json(),
                "source": candidate.source,
                "capability": numbers,
            }
            try:
                with _JOBS:
                    found = run_job(
                        self._server,
                        _FITS,
                        request,
                        _FITS_S,
                        confined="cpu",
                        readable=problem.access.readable,
                    )
            except TimeoutError:
                return False  # tiles that take so long to compile spill all they have
            except (WorkerDiedError, LimitExceededError):
                return True  # the judge says what is wrong with it
            return not found["why"]

        return {TUNER: Tuner(fits)}


@contextmanager
def open_session(problem: Problem, settings: Config, parallel: int = 1) -> Iterator[Session]:
    """Starts the processes for a problem, for so many steps at once, and ends them afterwards.

    Raises `BadInputError` where the device cannot be used.
    """
    server = start_server(problem)
    try:
        with session_on(server, problem, settings, parallel) as running:
            yield running
    finally:
        server.close()


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


@contextmanager
def session_on(
    server: ForkServer, problem: Problem, settings: Config, parallel: int = 1
) -> Iterator[Session]:
    """Open a session as `open_session` does, on a server that others may share."""
    environment = describe(server, problem)
    evaluators = [
        evaluator_on(server, problem, settings, beside=number)
        for number in range(evaluators_for(parallel))
    ]
    pool = EvaluatorPool(evaluators, on_gpu=problem.device != "cpu")
    remembered = remembering(pool, problem, settings, environment)
    evaluator = beside_published(remembered, server, problem, settings)
    try:
        yield Session(server, evaluator, environment)
    finally:
        evaluator.close()


def evaluator_on(
    server: ForkServer, problem: Problem, settings: Config, *, beside: int = 0
) -> Evaluator:
    """Return an evaluator on a server that others may share; one thread uses it at a time.

    It is the one after `beside` others of the same problem.
    """
    kind_of_evaluator = OfflineEvaluator if problem.target else LocalEvaluator
    return kind_of_evaluator(
        server,
        problem,
        timeout_s=settings.timeout_s,
        memory_bytes=int(settings.memory_gb * 2**30),
        beside=beside,
    )


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
    environment = replace(environment, isolation=Isolation.from_json(isolation))
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


def preparation(problem: Problem) -> str:
    """Name what `Evaluator.prepare` does."""
    if problem.target:
        return "running the reference on small sizes, in float64 too"
    if problem.device == "cpu":
        return "running the reference, in float64 too, and its baselines"
    return "running the reference, in float64 too, and its baselines (minutes, the first time)"


def notices(environment: Environment) -> list[str]:
    """Return a line for each wall of the sandbox that is missing on this machine."""
    return [f"not isolated here: {line}" for line in environment.isolation.missing]


def device_of(asked: str | None) -> str:
    """The device's full name ("cpu", "cuda:0")."""
    count = _gpu_count()
    if asked is None:
        return "cuda:0" if count else "cpu"
    if asked == "cpu":
        return asked
    match = re.fullmatch(r"cuda(?::(\d+))?", asked)
    if match is None:
        raise BadInputError(f"--device {asked}: write cpu, cuda or cuda:<index>")
    index = int(match[1] or 0)
    if index >= count:
        have = f"there are {count} (cuda:0 to cuda:{count - 1})" if count else "there is none"
        raise BadInputError(
            f"--device {asked}: no such GPU; {have} on this machine. Use --device cpu"
        )
    return f"cuda:{index}"


def _gpu_count() -> int:
    """Return the number of NVIDIA GPUs that the driver shows, without loading torch."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value
