"""A candidate at its real sizes: captured on meta tensors, its kernels compiled for the target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from adaexplore.core.candidate import Candidate
from adaexplore.core.descriptor import Descriptor
from adaexplore.core.evaluation import Estimate, Failed, Fault
from adaexplore.core.problem import Precision, Problem
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.failures import died
from adaexplore.evaluate.kernels.describe import OwnKernels, Part, describe
from adaexplore.evaluate.kernels.launcher import NO_ALLOCATOR, RefusedLaunchError
from adaexplore.evaluate.kernels.resources import Resources
from adaexplore.evaluate.kernels.targets import TARGETS, WARP, Target
from adaexplore.evaluate.offline.estimate import Work, estimate, kernel_us
from adaexplore.sandbox.process import WorkerDiedError

_Read = TypeVar("_Read")
_Launched = tuple[str, tuple[int, ...]]  # a kernel's name and its grid


@dataclass(frozen=True, slots=True)
class Compiled:
    """What is known of a candidate without running it: its kernels' needs, and an estimate."""

    resources: tuple[Resources, ...]
    estimate: Estimate
    descriptor: Descriptor


class UncapturedError(Exception):
    """The candidate does not run on meta tensors; `failure` is what it did there."""

    def __init__(self, failure: Failed) -> None:
        self.failure = failure
        super().__init__(failure.reason)


def compile_candidate(
    talk: Conversation,
    candidate: Candidate,
    problem: Problem,
    precision: Precision,
    arguments: dict[str, Any],
    floor: Estimate,
) -> Compiled:
    """Compiles every kernel that a call at full size launches.

    `arguments` holds the pickled "init" and "inputs" of `full_size.job`; an estimate of a part is
    not below the `floor`. Raises `UncapturedError` where there is nothing to compile yet, `Stop`
    with what the compiler or the launcher refuses, `TimeoutError`.
    """
    assert problem.target is not None
    try:
        works, launched = _captured(talk, candidate, problem, precision, arguments)
    except Stop as stop:
        if _refused_by_the_launcher(stop.verdict):
            raise
        raise UncapturedError(stop.verdict) from stop
    except WorkerDiedError as error:
        raise UncapturedError(died(error, talk.stage)) from error
    resources = tuple(_compiled(talk, problem.target))
    found = estimate(works, TARGETS[problem.target])
    if found.partial and found.time_us < floor.time_us:
        found = replace(floor, partial=True)
    described = _described(candidate, resources, works, launched, TARGETS[problem.target])
    return Compiled(resources, found, described)


def _described(
    candidate: Candidate,
    resources: Sequence[Resources],
    works: Sequence[Work],
    launched: Sequence[_Launched],
    target: Target,
) -> Descriptor:
    """Its descriptor, with estimates for times: of operations of torch, and of its own launches."""
    warps = {kernel.kernel: kernel.num_warps for kernel in resources}
    times_us = [kernel_us(work, target)[0] for work in works]
    operations = len(works) - len(launched)
    own: dict[str, Part] = {}
    for (name, grid), time_us in zip(launched, times_us[operations:], strict=True):
        part = own.get(name, Part(True, 0.0, 0.0, grid, (WARP * warps.get(name, 0), 1, 1)))
        own[name] = replace(part, time_us=part.time_us + time_us, launches=part.launches + 1)
    parts = [Part(False, time_us) for time_us in times_us[:operations]] + list(own.values())
    total_us = sum(times_us)
    moved = sum(work.memory_bytes for work in works)
    return describe(
        candidate.source,
        OwnKernels.of((r.kernel, r.code, r.instructions) for r in resources),
        parts,
        1e6 * moved / total_us if total_us else 0.0,
    )


def _captured(
    talk: Conversation,
    candidate: Candidate,
    problem: Problem,
    precision: Precision,
    arguments: dict[str, Any],
) -> tuple[list[Work], list[_Launched]]:
    talk.ask({"op": "begin", "target": problem.target, "device": "meta"})
    talk.stage = "importing and constructing"
    talk.ask(
        {
            "op": "load",
            "source": candidate.source,
            "device": "meta",
            "seed": problem.seed,
            "mode": problem.mode,
            "precision": precision,
            "init": arguments["init"],
            "access": problem.access.to_json(),
        }
    )
    talk.stage = "called at full size, on tensors without data"
    reply = talk.ask({"op": "capture", "inputs": arguments["inputs"], "precision": precision})
    return _read(talk, reply, _works_and_launches)


def _works_and_launches(reply: dict[str, Any]) -> tuple[list[Work], list[_Launched]]:
    works = [_work(item) for item in reply["works"]]
    launched = [
        (str(launch["kernel"]), tuple(map(int, launch["grid"]))) for launch in reply["launched"]
    ]
    if len(launched) > len(works):
        raise ValueError(launched)
    return works, launched


def _refused_by_the_launcher(failure: Failed) -> bool:
    """Whether it failed as it would on a GPU, and for its full size."""
    fault = failure.feedback
    return isinstance(fault, Fault) and fault.type == RefusedLaunchError.__name__


def _compiled(talk: Conversation, target: str) -> list[Resources]:
    found = []
    for number, name in enumerate(talk.ask({"op": "kernels"})["kernels"]):
        talk.stage = f"compiling {name[:80]} for {target}"
        try:
            reply = talk.ask({"op": "compile", "kernel": number})
        except Stop as stop:
            if stop.verdict.status == "runtime_error":  # whatever a compiler raises
                raise Stop(replace(stop.verdict, status="compile_error")) from stop
            raise
        except WorkerDiedError as error:
            raise Stop(replace(died(error, talk.stage), status="compile_error")) from error
        found.append(_read(talk, reply["resources"], _resources))
        if found[-1].scratch_bytes and not reply["has_allocator"]:
            raise Stop(_without_allocator(found[-1]))
    return found


def _without_allocator(resources: Resources) -> Failed:
    """What Triton raises at the launch of such a kernel."""
    reason = f"RuntimeError: {NO_ALLOCATOR} ({resources.kernel}, at its launch)"
    return Failed("runtime_error", reason, feedback=Fault("RuntimeError", NO_ALLOCATOR))


def _read(talk: Conversation, data: Any, read: Callable[[Any], _Read]) -> _Read:
    """What a reply says; the candidate's code may have written it itself."""
    try:
        return read(data)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        reason = f"its process sent what is no answer, while {talk.stage}"
        raise Stop(Failed("rejected", reason)) from None


def _work(data: dict[str, Any]) -> Work:
    programs = data["programs"]
    return Work(
        _amount(data["memory_bytes"]),
        _amount(data["cache_bytes"]),
        {str(kind): _amount(flops) for kind, flops in data["flops"].items()},
        programs if programs is None else max(int(programs), 1),
        bool(data["partial"]),
    )


def _amount(value: Any) -> float:
    if not math.isfinite(value) or value < 0:
        raise ValueError(value)
    return float(value)


def _resources(data: dict[str, Any]) -> Resources:
    others = ("kernel", "code", "instructions")
    numbers = {name: int(value) for name, value in data.items() if name not in others}
    return Resources(
        kernel=str(data["kernel"]),
        code=str(data["code"]),
        instructions=tuple(map(str, data["instructions"])),
        **numbers,
    )
