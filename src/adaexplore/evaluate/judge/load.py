"""Loading a candidate: everything up to the end of its first call."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.evaluate.candidate.worker import Slot
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.failures import COMPILING, LOADING
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.kernels.build.extensions import BUILD_S
from adaexplore.evaluate.timing.fresh import poison_all
from adaexplore.evaluate.timing.turnstile.protocol import turnstile_for
from adaexplore.evaluate.wire import messages as wire
from adaexplore.evaluate.wire.tensors import Layout, SharedTensor
from adaexplore.languages import DIALECTS
from adaexplore.sandbox.channel import MAX_FDS
from adaexplore.sandbox.user.values import Inputs, map_tensors

_LEAST_PATIENCE_S = 20.0
_TUNING_CALLS = 1000
_COMPILES_UNSEEN = ("torch.compile", "torch.jit", "torch.export", "torch.fx", "torch._")


def load(talk: Conversation, reference: Reference, candidate: Candidate) -> tuple[str, ...]:
    """Import and construct the candidate, and give it its inputs; return labels.

    On a GPU, its kernels are compiled first, while another process may use the GPU. Languages with
    a compiler of their own compile in the candidate's constructor, which does not hold the GPU.
    """
    problem = reference.problem
    if problem.device != "cpu" and not DIALECTS[problem.language].capture:
        _compile_ahead(talk, reference, candidate)
    talk.stage = LOADING
    loaded = talk.ask(
        wire.Load(
            source=candidate.source,
            device=problem.device,
            seed=problem.seed,
            mode=problem.mode,
            precision=reference.precision,
            access=problem.access,
            init=wire.pickled(reference.instance.init),
            gradients=reference.instance.gradients,
        )
    )
    talk.stage = "receiving its inputs"
    for workload in reference.workloads:
        poison_all(workload.buffers)  # they hold results of the reference, or of another candidate
        talk.give(wire.TakeBuffers, workload.buffers)
        for checked in workload.sets:
            talk.give(wire.TakeInputs, checked.shared, form=form_of(checked.inputs))
    return ("sets-global-flags",) if loaded.changed_flags else ()  # its process puts them back


def give_slots(talk: Conversation, reference: Reference, layouts: Mapping[str, Layout]) -> None:
    """Give a turnstile, and memory for the timed calls, each on inputs of its own.

    The places for outputs have the layout, by workload, that the verified outputs had.
    """
    talk.give_turnstile(turnstile_for(reference.problem.device))
    first = 0
    for workload in reference.timed:
        fresh = workload.fresh
        workload.first_slot, first = first, first + fresh.count
        inputs, places = fresh.given.rings, fresh.places(layouts[workload.name])
        talk.give(
            wire.TakeSlots,
            [ring.memory for ring in (*inputs, *places)],
            form=form_of(fresh.given.inputs[0]),
            count=fresh.count,
            inputs=len(inputs),
        )


def patience_s(reference: Reference, candidate: Candidate) -> float:
    """Return the seconds that a first call may go on without compiling anything.

    Autotuning makes many calls, some of them slow. What traces or compiles in memory shows nothing
    of it, and has no limit of its own.
    """
    if any(name in candidate.source for name in _COMPILES_UNSEEN):
        return math.inf
    eager_us = max(workload.baselines_us.get("eager", 0.0) for workload in reference.timed)
    return max(_LEAST_PATIENCE_S, _TUNING_CALLS * eager_us / 1e6)


def first_call(talk: Conversation) -> None:
    """Call the candidate for the first time; the caller holds the device."""
    talk.stage = "its first call"
    talk.ask(wire.RunOn(0))


def give_parameters(
    talk: Conversation, parameters: Mapping[str, SharedTensor], *, uncounted: bool = False
) -> None:
    """Give the reference's parameters and buffers, by name.

    The versions of the candidate's tensors count that, unless it is `uncounted`.
    """
    names = list(parameters)
    for part in (names[i : i + MAX_FDS] for i in range(0, len(names), MAX_FDS)):
        tensors = [parameters[name] for name in part]
        talk.give(wire.TakeParameters, tensors, names=tuple(part), uncounted=uncounted)


def inspect(talk: Conversation) -> None:
    """Raise `Stop` where the candidate's code has changed its process."""
    found = talk.ask(wire.Inspect())
    if found.replaced:
        reason = f"it replaces {', '.join(found.replaced[:3])}; leave PyTorch and Python be"
        raise Stop(Failed("rejected", reason))
    if found.changed_in_forward:
        changed = ", ".join(found.changed_in_forward[:3])
        raise Stop(Failed("rejected", f"forward() changes {changed} for the whole process"))


def _compile_ahead(talk: Conversation, reference: Reference, candidate: Candidate) -> None:
    """Compile the candidate's kernels while another process may use the GPU."""
    problem = reference.problem
    extensions = DIALECTS[problem.language].built_ahead
    request = wire.Build(
        source=candidate.source,
        capability=torch.cuda.get_device_capability(problem.device),
        seed=problem.seed,
        mode=problem.mode,
        access=problem.access,
        init=wire.pickled(reference.instance.init),
        inputs=tuple(map(_without_data, reference.workloads)),
        extensions=extensions,
        gradients=reference.instance.gradients,
    )
    talk.stage = COMPILING
    if extensions:
        _build(talk, request)
    else:
        talk.ask(request)


def _build(talk: Conversation, request: wire.Build) -> None:
    """Build the candidate's extensions, within a time limit of their own."""
    started, left_s = time.monotonic(), talk.deadline - time.monotonic()
    talk.deadline = started + BUILD_S
    try:
        talk.ask(request)
    except TimeoutError as error:
        raise Stop(Failed("timeout", f"not built after {BUILD_S:g} s")) from error
    talk.deadline = time.monotonic() + left_s


def _without_data(workload: JudgedWorkload) -> wire.Pickled:
    def meta(t: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")

    return wire.pickled(map_tensors(meta, workload.sets[0].inputs))


def form_of(inputs: Inputs) -> wire.Pickled:
    """Return the pickled arguments with a `Slot` in place of each tensor."""
    count = 0

    def to_slot(_: torch.Tensor) -> Any:
        nonlocal count
        count += 1
        return Slot(count - 1)

    return wire.pickled(map_tensors(to_slot, inputs))
