"""A candidate at its real sizes: captured on meta tensors, its kernels compiled for the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Precision, Problem
from adaexplore.core.verdict.descriptor import Descriptor
from adaexplore.core.verdict.evaluation import Estimate, Failed, Fault
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.failures import died
from adaexplore.evaluate.kernels.describe import OwnKernels, Part, describe
from adaexplore.evaluate.kernels.launcher import NO_ALLOCATOR, RefusedLaunchError
from adaexplore.evaluate.kernels.targets import TARGETS, WARP, Target
from adaexplore.evaluate.offline.estimate import combined, estimate, kernel_us, least
from adaexplore.evaluate.offline.full_size import FullSize
from adaexplore.evaluate.wire import offline_messages as wire
from adaexplore.evaluate.wire.messages import Load
from adaexplore.evaluate.wire.offline_messages import KernelResources
from adaexplore.sandbox.process import WorkerDiedError


@dataclass(frozen=True, slots=True)
class Compiled:
    """Facts about a candidate that is not run: its kernels' resources, and estimates of its time.

    `estimates` holds an estimate by timed workload; `estimate` is their geometric mean.
    `custom_share` is the part of the first one's work that its own kernels do.
    """

    resources: tuple[KernelResources, ...]
    estimate: Estimate
    descriptor: Descriptor
    estimates: Mapping[str, Estimate]
    custom_share: float


class UncapturedError(Exception):
    """A candidate that does not run on meta tensors; `failure` is its verdict there."""

    def __init__(self, failure: Failed) -> None:
        self.failure = failure
        super().__init__(failure.reason)


def compile_candidate(
    talk: Conversation,
    candidate: Candidate,
    problem: Problem,
    precision: Precision,
    full: FullSize,
) -> Compiled:
    """Compile every kernel that a call at full size launches, on each workload.

    The estimate is the geometric mean over the timed workloads. A partial estimate is raised to the
    workload's least time. Raises `UncapturedError` if no kernel can be captured, `Stop` if the
    compiler or the launcher refuses, and `TimeoutError`.
    """
    assert problem.target is not None
    target = TARGETS[problem.target]
    try:
        captured = _captured(talk, candidate, problem, precision, full)
    except Stop as stop:
        if _refused_by_the_launcher(stop.verdict):
            raise
        raise UncapturedError(stop.verdict) from stop
    except WorkerDiedError as error:
        raise UncapturedError(died(error, talk.stage)) from error
    resources = tuple(_compiled(talk, problem.target))
    estimates = {}
    for workload in full.timed:
        found = estimate(captured[workload.name].works, target)
        floor = least(workload.least_bytes, workload.least_flops, precision, target)
        if found.partial and found.time_us < floor.time_us:
            found = replace(floor, partial=True)
        estimates[workload.name] = found
    first = captured[full.timed[0].name]
    described = _described(candidate, resources, first, target)
    share = _custom_share(first, target)
    return Compiled(resources, combined(list(estimates.values())), described, estimates, share)


def _custom_share(captured: wire.CapturedWork, target: Target) -> float:
    """Return the launches' share of a call's work, each as if it had the whole GPU.

    A single program takes long for little work: its time would make much of one row.
    """
    times_us = [kernel_us(replace(work, programs=None), target)[0] for work in captured.works]
    operations = len(captured.works) - len(captured.launched)
    return sum(times_us[operations:]) / (sum(times_us) or 1.0)


def _described(
    candidate: Candidate,
    resources: Sequence[KernelResources],
    captured: wire.CapturedWork,
    target: Target,
) -> Descriptor:
    """Return the descriptor, with estimated times of operations and launches."""
    works, launched = captured.works, captured.launched
    warps = {kernel.kernel: kernel.num_warps for kernel in resources}
    times_us = [kernel_us(work, target)[0] for work in works]
    operations = len(works) - len(launched)
    own: dict[str, Part] = {}
    for launch, time_us in zip(launched, times_us[operations:], strict=True):
        name, grid = launch.kernel, launch.grid
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
    full: FullSize,
) -> dict[str, wire.CapturedWork]:
    """Return the work and the launches of a call by workload."""
    assert problem.target is not None
    talk.ask(wire.Begin(problem.target, "meta"))
    talk.stage = "importing and constructing"
    talk.ask(
        Load(
            source=candidate.source,
            device="meta",
            seed=problem.seed,
            mode=problem.mode,
            precision=precision,
            access=problem.access,
            init=full.init,
            gradients=full.gradients,
        )
    )
    talk.stage = "called at full size, on tensors without data"
    return {w.name: talk.ask(wire.Capture(w.inputs, precision)) for w in full.workloads}


def _refused_by_the_launcher(failure: Failed) -> bool:
    """Return True if the launcher refused the full size, as it would on a GPU."""
    fault = failure.feedback
    return isinstance(fault, Fault) and fault.type == RefusedLaunchError.__name__


def _compiled(talk: Conversation, target: str) -> Iterator[KernelResources]:
    for number, name in enumerate(talk.ask(wire.ListKernels()).kernels):
        talk.stage = f"compiling {name[:80]} for {target}"
        try:
            compiled = talk.ask(wire.CompileKernel(number))
        except Stop as stop:
            if stop.verdict.status == "runtime_error":  # any exception of the compiler
                raise Stop(replace(stop.verdict, status="compile_error")) from stop
            raise
        except WorkerDiedError as error:
            raise Stop(replace(died(error, talk.stage), status="compile_error")) from error
        if compiled.resources.scratch_bytes and not compiled.has_allocator:
            raise Stop(_without_allocator(compiled.resources))
        yield compiled.resources


def _without_allocator(resources: KernelResources) -> Failed:
    """Return the failure that Triton raises when a kernel without an allocator is launched."""
    reason = f"RuntimeError: {NO_ALLOCATOR} ({resources.kernel}, at its launch)"
    return Failed("runtime_error", reason, feedback=Fault("RuntimeError", NO_ALLOCATOR))
