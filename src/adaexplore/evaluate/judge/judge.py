"""The trusted process of a run: holds the reference; candidates have processes of their own."""

from __future__ import annotations

import gc
import traceback
from pathlib import Path

import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError
from adaexplore.core.evaluation import Evaluation, evaluation_to_json
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.bench import CandidateBench
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.trials import try_baselines
from adaexplore.evaluate.kernels.build.compile_cache import share_compiled
from adaexplore.evaluate.timing.baselines import EAGER
from adaexplore.evaluate.timing.baselines_trial import Trial
from adaexplore.evaluate.wire import codec
from adaexplore.evaluate.wire.judge_messages import (
    BadProblem,
    Broken,
    Evaluate,
    Evaluated,
    Prepare,
    ReferencePrepared,
)
from adaexplore.evaluate.wire.messages import decode
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.compile_threads import compile_in_parallel
from adaexplore.sandbox.lock import device_lent, device_lock
from adaexplore.sandbox.process import ForkServer
from adaexplore.sandbox.user.hang import limit_calls
from adaexplore.sandbox.user.user_code import causes, is_out_of_memory


def main(channel: Channel, control: Channel | None) -> None:
    """Answer one `Prepare`, then any number of `Evaluate` requests; a worker's entry."""
    assert control is not None
    share_compiled()
    folder = Path.cwd()
    server = ForkServer(control, folder)
    bench: CandidateBench | None = None
    while True:
        request = decode(channel.receive())
        try:
            if isinstance(request, Prepare):
                problem = Problem.from_json(request.problem)
                limit_calls(request.timeout_s)
                reference = _prepared(problem, folder, server, brief=request.brief)
                bench = CandidateBench(reference, server, request.memory_bytes)
                reply: object = ReferencePrepared(reference.facts().to_json())
                _release_memory()
            else:
                assert isinstance(request, Evaluate)
                assert bench is not None
                reply = Evaluated(evaluation_to_json(_evaluated(bench, request)))
                torch.cuda.empty_cache()  # without collecting garbage, which takes 0.15 s
        except BadProblemError as error:
            reply = BadProblem(str(error))
        except Exception as error:  # noqa: BLE001 - reported as infrastructure trouble
            reply = Broken(f"{type(error).__name__}: {error}", traceback.format_exc())
        channel.send(codec.write(reply))


def _evaluated(bench: CandidateBench, request: Evaluate) -> Evaluation:
    parent = Candidate(request.parent, request.language) if request.parent else None
    candidate = Candidate(request.source, request.language)
    return bench.evaluate(candidate, request.timeout_s, parent, again=request.again)


def _prepared(problem: Problem, folder: Path, server: ForkServer, *, brief: bool) -> Reference:
    """Return the prepared reference; prepare it alone where a shared GPU has too little memory.

    Raises `BadProblemError` for a reference that cannot be verified against.
    """
    if problem.device == "cpu":
        compile_in_parallel()
    try:
        return _prepared_beside_others(problem, folder, server, brief=brief)
    except (RuntimeError, MemoryError, BadProblemError) as error:
        if problem.device == "cpu" or not any(map(is_out_of_memory, causes(error))):
            raise
    _release_memory()
    with device_lock(problem.device, exclusive=True):
        return _prepared_beside_others(problem, folder, server, brief=brief)


def _prepared_beside_others(
    problem: Problem, folder: Path, server: ForkServer, *, brief: bool
) -> Reference:
    try:
        with device_lock(problem.device, exclusive=False):
            reference = Reference(problem, folder, brief=brief)
        trials = _trials(reference, server)
        with device_lock(problem.device, exclusive=False):
            reference.complete(trials)
        with device_lock(problem.device, exclusive=True):
            reference.time_baselines()
            reference.measure_limits()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise BadProblemError(
            f"{problem.name}.py: verifying it takes more memory than the device has free; "
            "reduce the sizes in the file, or end what else uses the device"
        ) from error
    return reference


def _trials(reference: Reference, server: ForkServer) -> list[Trial]:
    """Try the baselines on a GPU, which others may use meanwhile; on the CPU none takes long."""
    problem = reference.problem
    if problem.device == "cpu" or not reference.offered:
        return []
    _release_memory()
    with device_lent(problem.device):
        return try_baselines(server, problem, [EAGER, *reference.offered])


def _release_memory() -> None:
    """Return the memory that preparing took to the device, for candidates."""
    gc.collect()
    torch.cuda.empty_cache()  # does nothing where CUDA was not used
