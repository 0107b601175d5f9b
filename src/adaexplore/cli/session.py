"""From options to a problem and the processes that work on it."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.errors import BadInputError
from adaexplore.evaluate.local import LocalEvaluator
from adaexplore.problem import Language, Mode, Precision, Problem
from adaexplore.problems.kernelbench import load
from adaexplore.propose.base import Proposer
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.process import ForkServer
from adaexplore.settings import Settings

_PRELOAD = (
    "torch",
    "triton",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torch.export",
    "adaexplore.evaluate.judge",
    "adaexplore.evaluate.worker",
    "adaexplore.propose.compiler.job",
)
_WARM_CPP = "adaexplore.evaluate.warm:warm_cpp_compiler"
_DESCRIBE = "adaexplore.evaluate.environment:describe"
_DESCRIBE_S = 120.0


@dataclass(frozen=True, slots=True)
class Asked:
    """The options that say what is to be judged; None where the machine decides."""

    path: Path
    language: Language | None
    device: str | None
    precision: Precision
    mode: Mode
    seed: int


def load_problem(asked: Asked) -> Problem:
    """The problem that the options describe; `BadInputError` where they do not fit together."""
    device = _device(asked.device)
    on_gpu = device != "cpu"
    language: Language = "triton" if on_gpu else "cpp"
    if asked.language is not None and asked.language != language:
        raise BadInputError(
            f"--language {asked.language} does not run on --device {device}: "
            "triton needs cuda, cpp needs cpu"
        )
    return load(
        asked.path,
        device=device,
        language=language,
        precision=asked.precision,
        seed=asked.seed,
        mode=asked.mode,
    )


@dataclass(frozen=True, slots=True)
class Session:
    """Running processes for one problem."""

    server: ForkServer
    evaluator: LocalEvaluator
    environment: dict[str, Any]

    def proposer(self, name: str, settings: Settings) -> Proposer:
        """The proposer of that name."""
        assert name == "compiler"  # the only choice so far
        from adaexplore.propose.compiler.proposer import CompilerProposer

        def job(entry: str, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
            return run_job(self.server, entry, request, timeout_s)

        return CompilerProposer(job, timeout_s=settings.propose_timeout_s)


@contextmanager
def session(problem: Problem, settings: Settings) -> Iterator[Session]:
    """Starts the processes for a problem and ends them afterwards.

    Raises `BadInputError` where the device cannot be used.
    """
    warm = [_WARM_CPP] if problem.language == "cpp" else []
    server = ForkServer.start([*_PRELOAD, *warm])
    try:
        environment = run_job(server, _DESCRIBE, {"device": problem.device}, _DESCRIBE_S)
        if "unusable" in environment:
            raise BadInputError(environment["unusable"])
        evaluator = LocalEvaluator(
            server,
            problem,
            timeout_s=settings.timeout_s,
            memory_bytes=int(settings.memory_gb * 2**30),
        )
        try:
            yield Session(server, evaluator, environment)
        finally:
            evaluator.close()
    finally:
        server.close()


def _device(asked: str | None) -> str:
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
    """How many NVIDIA GPUs the driver shows, without loading torch."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value
