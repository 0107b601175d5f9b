"""A trial of one baseline in a process of its own: can it be built, and how fast is it?

A build may take minutes, crash, or leave CUDA's state spoiled: the judge repeats only those that
went well, from Inductor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import torch

from adaexplore.core import codec
from adaexplore.core.errors import BadProblemError, InfrastructureError
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.clock import Call as Calls
from adaexplore.evaluate.kernels.build.compile_cache import share_compiled
from adaexplore.evaluate.timing.audit import Own
from adaexplore.evaluate.timing.baselines.built import why_not_built
from adaexplore.evaluate.timing.baselines.compiling import CompileLimit, compiling_lent
from adaexplore.evaluate.timing.baselines.offered import BUILD_ERRORS, Call, Subject, baseline_named
from adaexplore.evaluate.timing.clock import clock_for
from adaexplore.evaluate.timing.cpu_time import own_waited_us
from adaexplore.evaluate.timing.rounds import QUIET, Block, Round, quiet_rounds, timed_block
from adaexplore.evaluate.timing.turnstile.own import OwnSlots, OwnTurnstile
from adaexplore.evaluate.timing.turnstile.slots import seals_of, sums_over
from adaexplore.evaluate.truth.device_memory.room import wanted_by
from adaexplore.evaluate.truth.device_memory.turns import begin_on, let_others_time
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.compile_threads import compile_in_parallel
from adaexplore.sandbox.cores import stand_behind
from adaexplore.sandbox.lock import device_lock
from adaexplore.sandbox.user.user_code import Instance, causes, is_out_of_memory
from adaexplore.sandbox.user.values import Inputs

TRIAL = f"{__name__}:main"
"""Entry of a worker that tries one baseline."""

_PILOT = 3
_BLOCKS = 5
_BLOCK_US = 20_000.0
_MOST_CALLS = 100
_LEAST_WANTED = 1 << 30  # bytes, of what could not even begin


@dataclass(frozen=True, slots=True)
class BaselineTrial:
    """The outcome of a trial: the time in microseconds on each timed workload, or `why` none.

    `waited` is the share of the time for which threads had no processor, on a busy machine. Where
    memory ran out, `wanted` are the bytes of a GPU's memory that would have been enough. An
    outcome that `lasts` is one of the problem and the software; another time, there may be more
    memory, or less load.
    """

    baseline: str
    times_us: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    waited: float = 0.0
    wanted: int = 0
    lasts: bool = True


@dataclass(frozen=True, slots=True)
class _Tried:
    """A baseline that was built for one workload."""

    runs: ReferenceRuns
    inputs: Inputs
    call: Call


def main(channel: Channel, control: Channel | None) -> None:  # noqa: ARG001 - worker signature
    """Answer a request to build a baseline, then one to time it, each with a `BaselineTrial`.

    A worker's entry. The first request has `problem`, `baseline` and `limit_s`: the seconds that
    Inductor may compile in all. With the second, the device is held for this process. The process
    ends after them.
    """
    share_compiled()
    compile_in_parallel()
    stand_behind()
    request = channel.receive()
    problem, name = Problem.from_json(request["problem"]), request["baseline"]
    tried: dict[str, _Tried] = {}

    def build() -> BaselineTrial:
        begin_on(problem.device)
        with device_lock(problem.device, exclusive=False):
            tried.update(_built(problem, name, CompileLimit(request["limit_s"])))
        return BaselineTrial(name)

    def measure() -> BaselineTrial:
        timed = _timer(problem.device)
        blocks = {workload: _blocks(each, timed) for workload, each in tried.items()}
        waited = max(median(block.waited for block in each) for each in blocks.values())
        # Of a virtual machine's processors, others slow down some for a while.
        times = {name: min(block.time_us for block in b) for name, b in blocks.items()}
        return BaselineTrial(name, times, waited=waited, lasts=waited <= QUIET)

    channel.send(codec.write(_outcome(name, problem.device, build)))
    channel.receive()
    channel.send(codec.write(_outcome(name, problem.device, measure)))


def _outcome(name: str, device: str, work: Callable[[], BaselineTrial]) -> BaselineTrial:
    """Return the result of a step, or the failure that ends a trial."""
    try:
        return work()
    except InfrastructureError as error:
        return BaselineTrial(name, why=str(error), wanted=_LEAST_WANTED, lasts=False)
    except (*BUILD_ERRORS, BadProblemError) as error:
        no_memory = any(map(is_out_of_memory, causes(error)))
        if isinstance(error, BadProblemError) and not no_memory:
            raise
        wanted = wanted_by(error, device) if no_memory and device != "cpu" else 0
        return BaselineTrial(name, why=why_not_built(error), wanted=wanted, lasts=not no_memory)


def _built(problem: Problem, name: str, limit: CompileLimit) -> dict[str, _Tried]:
    """Build a baseline for each timed workload, and call it until it is warm."""
    device = problem.device
    instance = Instance.judged(problem, Path.cwd())
    timed = problem.timed_workloads
    baseline, tried = baseline_named(name), {}
    for workload in timed:
        let_others_time(device)
        inputs = instance.inputs(problem.seed, workload)
        runs = ReferenceRuns(problem, instance, inputs, workload)
        subject = Subject(instance.model, inputs, device, len(timed))
        if not baseline.applies(subject):
            raise ValueError("it does not apply")
        with runs.scope(runs.precision), compiling_lent(device, limit):
            let_others_time(device)
            call = baseline.build(subject)
            for _ in range(_PILOT):
                let_others_time(device)
                call(inputs)
        tried[workload.name] = _Tried(runs, inputs, call)
    return tried


def _timer(device: str) -> Callable[[Calls, int], list[float]]:
    """Return a function that times so many calls, behind a turnstile.

    Beside candidates, launching a call has a head start. With another a slow host would tell the
    time of launching, by which other baselines are the strongest.
    """
    clock, turnstile = clock_for(device), OwnTurnstile(device)
    nothing: list[list[torch.Tensor]] = [[] for _ in range(_MOST_CALLS)]
    on = torch.device(device)
    slots = OwnSlots(lambda _: 1, seals_of(nothing, on), sums_over(nothing, on))

    def timed(calls: Calls, count: int) -> list[float]:
        own = Own(0.0, delivering_us=median(turnstile.delivering_us or [0.0]))
        return turnstile.block(clock, calls, count, slots, head_start_s=own.head_start_s)[0]

    return timed


def _blocks(tried: _Tried, timed: Callable[[Calls, int], list[float]]) -> list[Block]:
    """Time blocks of calls, again where threads waited for a processor."""

    def call(_: int) -> object:
        return tried.call(tried.inputs)

    def take() -> Round:
        return {"": timed_block(partial(timed, call), count, own_waited_us)}

    with tried.runs.scope(tried.runs.precision):
        clock_for(tried.runs.problem.device).warm(call)
        first_us = max(median(timed(call, _PILOT)), 1.0)
        count = int(min(max(_BLOCK_US / first_us, _PILOT), _MOST_CALLS))
        return [block for blocks in quiet_rounds(take, _BLOCKS) for block in blocks.values()]
