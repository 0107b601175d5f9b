"""The trusted process of a run: holds the reference and sends candidates to their own processes."""

from __future__ import annotations

import gc
import traceback
from pathlib import Path
from typing import Any

import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError
from adaexplore.core.evaluation import evaluation_to_json
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.bench import Bench
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.kernels.compile_cache import share_compiled
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.compile_threads import compile_in_parallel
from adaexplore.sandbox.device_lock import device_lock
from adaexplore.sandbox.hang import limit_calls
from adaexplore.sandbox.process import ForkServer
from adaexplore.sandbox.user_code import causes, is_out_of_memory


def main(channel: Channel, control: Channel | None) -> None:
    """Worker entry: one "prepare", then any number of "evaluate" requests."""
    assert control is not None
    share_compiled()
    folder = Path.cwd()
    server = ForkServer(control, folder)
    bench: Bench | None = None
    while True:
        request = channel.receive()
        try:
            if request["op"] == "prepare":
                problem = Problem.from_json(request["problem"])
                limit_calls(request["timeout_s"])
                reference = _prepared(problem, folder, brief=request["brief"])
                bench = Bench(reference, server, request["memory_bytes"])
                reply: dict[str, Any] = {"facts": reference.facts().to_json()}
                _release_memory()
            else:
                assert bench is not None
                candidate = Candidate(request["source"], request["language"])
                evaluation = bench.evaluate(
                    candidate,
                    request["timeout_s"],
                    Candidate(request["parent"], request["language"])
                    if request["parent"]
                    else None,
                    again=request["again"],
                )
                torch.cuda.empty_cache()  # without collecting garbage, which takes 0.15 s
                reply = {"evaluation": evaluation_to_json(evaluation)}
        except BadProblemError as error:
            reply = {"bad_problem": str(error)}
        except Exception as error:  # noqa: BLE001 - reported as infrastructure trouble
            reply = {"broken": f"{type(error).__name__}: {error}", "log": traceback.format_exc()}
        channel.send(reply)


def _prepared(problem: Problem, folder: Path, *, brief: bool) -> Reference:
    """The reference, ready to judge by; made alone on a GPU that others left too little room on.

    Raises `BadProblemError` for one that cannot be verified against.
    """
    if problem.device == "cpu":
        compile_in_parallel()
    try:
        return _prepared_beside_others(problem, folder, brief=brief)
    except (RuntimeError, MemoryError, BadProblemError) as error:
        if problem.device == "cpu" or not any(map(is_out_of_memory, causes(error))):
            raise
    _release_memory()
    with device_lock(problem.device, exclusive=True):
        return _prepared_beside_others(problem, folder, brief=brief)


def _prepared_beside_others(problem: Problem, folder: Path, *, brief: bool) -> Reference:
    try:
        with device_lock(problem.device, exclusive=False):
            reference = Reference(problem, folder, brief=brief)
            reference.complete()
        with device_lock(problem.device, exclusive=True):
            reference.time_baselines()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise BadProblemError(
            f"{problem.name}.py: verifying it takes more memory than the device has free; "
            "reduce the sizes in the file, or end what else uses the device"
        ) from error
    return reference


def _release_memory() -> None:
    """Gives what preparing took back to the device, so that candidates have room."""
    gc.collect()
    torch.cuda.empty_cache()  # does nothing where CUDA was not used
