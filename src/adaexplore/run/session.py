"""From options to a problem and the processes that work on it."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from adaexplore import problems
from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Language, Problem, TargetName
from adaexplore.core.protocols.evaluator import Evaluator
from adaexplore.core.protocols.proposer import Proposer
from adaexplore.core.settings.config import Config
from adaexplore.evaluate.judge.evaluators.pool import EvaluatorPool, evaluators_for
from adaexplore.languages import DIALECTS
from adaexplore.propose.tuner.proposer import ORIGIN as TUNER
from adaexplore.propose.tuner.proposer import Tuner
from adaexplore.run.cluster.connection import device_in, open_fleet, order_of
from adaexplore.run.cluster.evaluator import ClusterEvaluator
from adaexplore.run.cluster.fleet import Fleet
from adaexplore.run.processes import RunJob, describe, evaluator_on, jobs_on, start_server
from adaexplore.run.verdicts.published_judge import beside_published
from adaexplore.run.verdicts.take_over import taking_over
from adaexplore.sandbox.gpus import alone
from adaexplore.sandbox.process import ForkServer, WorkerDiedError
from adaexplore.sandbox.watchdog import LimitExceededError
from adaexplore.store import Store

DEFAULT_TARGET: TargetName = "sm_90"
INTERRUPTED = 130  # 128 + SIGINT, the shells' convention
_FITS = "adaexplore.evaluate.offline.fits:job"
_FITS_S = 60.0
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
    asked = "cpu" if config.device is None and config.target else config.device
    device = device_of(asked, config.ray)
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
    require_judges(config)
    return Setup(device, language, target)


def require_judges(config: Config) -> None:
    """Raise `BadInputError` for a judge that cannot be where the candidates are judged."""
    if config.ray and config.published_judge:
        raise BadInputError(
            "--set published_judge=true runs on this machine; leave out --ray, or give --set "
            "published_judge=false"
        )


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

    `jobs` is None where the evaluator is the user's own and nothing else needs a process.
    """

    jobs: RunJob | None
    evaluator: Evaluator
    environment: Environment

    def compiler(self, settings: Config) -> Proposer:
        """The proposer that needs no model."""
        from adaexplore.propose.compiler.proposer import CompilerProposer

        def job(entry: str, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
            device, _ = alone(request["problem"]["device"])
            problem = request["problem"] | {"device": device}
            with _JOBS:
                return self._run_job(entry, request | {"problem": problem}, timeout_s)

        return CompilerProposer(job, timeout_s=settings.propose_timeout_s)

    @property
    def _run_job(self) -> RunJob:
        if self.jobs is None:
            raise BadInputError("this run has no worker processes: its evaluator is the user's own")
        return self.jobs

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
                    found = self._run_job(
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
    if settings.ray:
        with (
            closing(open_fleet(problem, settings)) as fleet,
            session_in(fleet, problem, settings, parallel) as running,
        ):
            yield running
        return
    server = start_server(problem)
    try:
        with session_on(server, problem, settings, parallel) as running:
            yield running
    finally:
        server.close()


@contextmanager
def session_on(
    server: ForkServer, problem: Problem, settings: Config, parallel: int = 1, problems: int = 1
) -> Iterator[Session]:
    """Open a session as `open_session` does, on a server that others may share.

    So many `problems` share the device.
    """
    environment = describe(server, problem)
    evaluators = [
        evaluator_on(server, problem, settings, beside=number)
        for number in range(evaluators_for(parallel, problems=problems))
    ]
    pool = EvaluatorPool(evaluators, on_gpu=problem.device != "cpu")
    with closing(pool), taking_over(pool, problem, settings, environment) as judge:
        evaluator = beside_published(judge, server, problem, settings)
        yield Session(jobs_on(server, problem), evaluator, environment)


@contextmanager
def session_in(
    fleet: Fleet, problem: Problem, settings: Config, parallel: int = 1
) -> Iterator[Session]:
    """Open a session on the devices of a cluster, which other sessions may share."""
    fleet.want(parallel)
    evaluator = ClusterEvaluator(fleet, order_of(problem, settings))
    with closing(evaluator):
        environment = evaluator.environment()
        with taking_over(evaluator, problem, settings, environment) as judge:
            yield Session(evaluator.run_job, judge, environment)


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


def device_of(asked: str | None, ray: str = "") -> str:
    """The device's full name ("cpu", "cuda:0"), on this machine or in the cluster at `ray`."""
    if ray:
        return device_in(ray, asked)
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


def present(device: str, ray: str = "") -> str:
    """Return the device that judges on this machine what began on a machine with more GPUs."""
    kind, _, index = device.partition(":")
    lacks = not ray and kind == "cuda" and index.isdecimal() and 0 < _gpu_count() <= int(index)
    return "cuda:0" if lacks else device


def take_present_gpu(store: Store) -> str:
    """Let a run go on with this machine's first GPU where it lacks the run's own.

    Returns a line that says so, empty where nothing changes.
    """
    run = store.run()
    problem = replace(run.problem, device=present(run.problem.device, run.config.ray))
    if problem == run.problem:
        return ""
    store.move(problem)
    return f"{run.problem.device} is not on this machine: {problem.device} judges from here on"


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
