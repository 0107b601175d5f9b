"""The trusted process of a run: holds the reference; candidates have processes of their own."""

from __future__ import annotations

import time
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import torch

from adaexplore.core import codec
from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError, InfrastructureError
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Evaluation
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.evaluate.judge.bench import CandidateBench
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.trials import try_baselines
from adaexplore.evaluate.kernels.build.compile_cache import share_compiled
from adaexplore.evaluate.timing.baselines.trial import BaselineTrial
from adaexplore.evaluate.truth.device_memory.room import (
    release_memory,
    room_on,
    wait_for_room,
    wanted_by,
)
from adaexplore.evaluate.truth.device_memory.turns import PATIENCE_S, begin_on
from adaexplore.evaluate.wire.judge_messages import (
    BadProblem,
    Broken,
    Evaluate,
    Evaluated,
    Prepare,
    ReferencePrepared,
    TryUses,
    UsesTried,
)
from adaexplore.evaluate.wire.messages import decode
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.compile_threads import compile_in_parallel
from adaexplore.sandbox.lock import (
    device_lent,
    device_lock,
    has_other_judges,
    join_judges,
    large_turn,
    waited_s,
)
from adaexplore.sandbox.process import ForkServer
from adaexplore.sandbox.user.hang import limit_calls
from adaexplore.sandbox.user.user_code import causes, is_out_of_memory

_TRIES_IN_TURN = 4  # each names the memory up to the next allocation that fails
_LEAST_WANTED = 1 / 16  # of the memory: what runs out at its first allocation will ask for more


def main(channel: Channel, control: Channel | None) -> None:
    """Answer one `Prepare`, then any number of requests about candidates; a worker's entry."""
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
                reference = _prepared(problem, folder, server, request)
                bench = CandidateBench(reference, server, request.memory_bytes)
                reply: object = ReferencePrepared(reference.facts().to_json())
                release_memory()
            elif isinstance(request, TryUses):
                assert bench is not None
                candidate = Candidate(request.source, request.language)
                reply = UsesTried(bench.try_uses(candidate, request.timeout_s))
                release_memory()
            else:
                assert isinstance(request, Evaluate)
                assert bench is not None
                reply = Evaluated(evaluation_to_json(_evaluated(bench, request)))
                torch.cuda.empty_cache()  # without collecting garbage, which takes 0.15 s
        except BadProblemError as error:
            reply = BadProblem(str(error))
        except InfrastructureError as error:
            reply = Broken(str(error), traceback.format_exc())
        except Exception as error:  # noqa: BLE001 - reported as infrastructure trouble
            reply = Broken(f"{type(error).__name__}: {error}", traceback.format_exc())
        channel.send(codec.write(reply))


def _evaluated(bench: CandidateBench, request: Evaluate) -> Evaluation:
    parent = Candidate(request.parent, request.language) if request.parent else None
    candidate = Candidate(request.source, request.language)
    return bench.evaluate(candidate, request.timeout_s, parent, again=request.again)


def _prepared(problem: Problem, folder: Path, server: ForkServer, request: Prepare) -> Reference:
    """Return the prepared reference, with as much verification as memory allows.

    Where a shared GPU has too little memory, wait for room and for the turn to fill it; where that
    does not help, verify on the fewest input sets, alone on the GPU. Raises `BadProblemError` for a
    reference that cannot be verified against, or has too little room beside others of its problem.
    """
    device = problem.device
    begin_on(device)
    join_judges(device)
    prepare = partial(
        _prepared_beside_others,
        problem,
        folder,
        server,
        brief=request.brief,
        own_only=request.own_only,
    )
    if device == "cpu":
        compile_in_parallel()
        return prepare()
    if request.beside:
        reference = prepare()
        _check_room(problem, judges=request.beside + 1)
        return reference
    try:
        return prepare()
    except (RuntimeError, MemoryError, BadProblemError) as error:
        wanted = _wanted(error, device)
    patient_until = time.monotonic() + PATIENCE_S
    others = partial(has_other_judges, device)
    for _ in range(_TRIES_IN_TURN):
        release_memory()
        with large_turn(device):
            patience_s = patient_until - time.monotonic()
            if not wait_for_room(wanted, partial(room_on, device), patience_s, others):
                break
            try:
                return prepare()
            except (RuntimeError, MemoryError, BadProblemError) as error:
                before, wanted = wanted, _wanted(error, device)
        if wanted <= before:
            if not others():
                break
            wanted = 2 * before  # others took what was free
    release_memory()
    with large_turn(device), device_lock(device, exclusive=True):
        return prepare(lean=True)


def _check_room(problem: Problem, judges: int) -> None:
    """Raise `BadProblemError` where the judges of a problem may run out of a GPU's memory.

    Judging a candidate takes about as much again as preparing took at most.
    """
    release_memory()
    if room_on(problem.device).free < judges * torch.cuda.max_memory_allocated(problem.device):
        raise BadProblemError(f"{problem.name}.py: too little memory for another judge")


def _wanted(error: BaseException, device: str) -> int:
    """Return the memory that would have been enough; raise other trouble again."""
    if not any(map(is_out_of_memory, causes(error))):
        raise error
    return max(wanted_by(error, device), int(_LEAST_WANTED * room_on(device).total))


def _prepared_beside_others(
    problem: Problem,
    folder: Path,
    server: ForkServer,
    *,
    brief: bool,
    own_only: bool,
    lean: bool = False,
) -> Reference:
    """Return the prepared reference.

    A large one tries its baselines first. Then it has the turn for large work until it holds all
    that it will: another that began before would take the memory that the timing of this one needs.
    """
    took_s, waited_before_s = defaultdict[str, float](float), waited_s()
    on_gpu = problem.device != "cpu"

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        began, before_s = time.monotonic(), sum(took_s.values())
        yield
        within_s = sum(took_s.values()) - before_s
        took_s[name] += time.monotonic() - began - within_s

    def try_each(names: Sequence[str]) -> list[BaselineTrial]:
        """Try baselines on a GPU, which others may use meanwhile; on the CPU none takes long."""
        release_memory()
        with stage("trials"), device_lent(problem.device):
            return try_baselines(server, problem, names)

    try:
        with ExitStack() as turn:
            with stage("truths"), device_lock(problem.device, exclusive=False):
                reference = Reference(
                    problem,
                    folder,
                    brief=brief,
                    lean=lean,
                    own_only=own_only,
                    turn=turn,
                    try_each=try_each if on_gpu else None,
                )
            reference.try_baselines()
            with stage("labels"), device_lock(problem.device, exclusive=False):
                reference.complete()
            with stage("timing"), device_lock(problem.device, exclusive=True):
                reference.time_baselines()
                reference.measure_limits()
        if on_gpu:
            reference.took_s = {**took_s, "waiting": waited_s() - waited_before_s}
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise BadProblemError(
            f"{problem.name}.py: verifying it takes more memory than the device has free; "
            "reduce the sizes in the file, or end what else uses the device"
        ) from error
    return reference
