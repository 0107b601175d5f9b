"""The baselines of a candidate: PyTorch eager, and `torch.compile` with its defaults."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch
import torch._inductor.compile_fx as inductor
from torch import nn

from adaexplore.core.errors import BadProblemError
from adaexplore.core.protocols.clock import Clock
from adaexplore.evaluate.timing.clock import clock_for
from adaexplore.evaluate.timing.fresh import FreshInputs
from adaexplore.evaluate.timing.outputs import finished
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import CheckedSet
from adaexplore.sandbox.lock import device_lent
from adaexplore.sandbox.user.user_code import Instance, causes, is_out_of_memory
from adaexplore.sandbox.user.values import NamedTensor, flatten_outputs

_OVERHEADS = 6  # blocks: the machine may be busier than it was


class Baselines:
    """The reference's models that are timed beside candidates, on one workload.

    They run in the requested class. `compiled` is the reference under `torch.compile`; it is no
    baseline where it fails or gives a wrong result.
    """

    def __init__(
        self,
        runs: ReferenceRuns,
        sets: list[CheckedSet],
        notes: list[str],
        compiled: nn.Module | None,
    ) -> None:
        self._runs = runs
        self._sets = sets
        self._notes = notes
        self._clock: Clock = clock_for(runs.problem.device)
        self.compiled = compiled if compiled is not None and self._is_right(compiled) else None
        self._overheads_us: list[float] = []

    @property
    def overhead_us(self) -> float:
        """The time of a call outside its timed window, by the judge's clock, of the last blocks."""
        return median(self._overheads_us[-_OVERHEADS:])

    def calls_in(self, span_us: float) -> int:
        """Return roughly the number of calls of the eager reference that fill a span."""
        [inputs, *_] = [s.inputs for s in self._sets if s.from_problem]

        def call(_: int) -> object:
            return self._runs.instance.model(*inputs.args, **inputs.kwargs)

        with self._runs.scope(self._runs.precision):
            self._clock.warm(call)
            each_us = median(self._clock.block(call, 3, lambda _, __: None))
        return math.ceil(span_us / each_us)

    def blocks(self, fresh: FreshInputs) -> dict[str, Callable[[int], list[float]]]:
        """Return by name a function that times a number of calls, at most one on each slot."""
        models = {"eager": self._runs.instance.model} | (
            {"compile": self.compiled} if self.compiled is not None else {}
        )
        return {name: self._block(model, fresh) for name, model in models.items()}

    def time(self, fresh: FreshInputs) -> dict[str, float]:
        """Time the baselines briefly, in microseconds; the caller holds the device."""
        blocks, count = self.blocks(fresh), min(3, fresh.count)
        rounds = [{name: median(block(count)) for name, block in blocks.items()} for _ in range(5)]
        return {name: median(r[name] for r in rounds) for name in blocks}

    def _block(self, model: nn.Module, fresh: FreshInputs) -> Callable[[int], list[float]]:
        """Return a function that times calls of a baseline as candidates are timed."""
        slots = fresh.own_slots

        def warm_call(i: int) -> object:
            inputs = slots[i % len(slots)]
            return model(*inputs.args, **inputs.kwargs)

        def call(i: int) -> list[NamedTensor]:
            inputs = slots[i]
            return finished(model(*inputs.args, **inputs.kwargs))

        def deliver(i: int, outputs: list[NamedTensor]) -> None:
            fresh.take(i, outputs)

        def block(count: int) -> list[float]:
            with self._runs.scope(self._runs.precision):
                self._clock.warm(warm_call)
                started = time.perf_counter_ns()
                times = self._clock.block(call, count, deliver, fresh.complete)
                wall_us = (time.perf_counter_ns() - started) / 1000.0
            self._overheads_us.append((wall_us - sum(times)) / count)
            return times

        return block

    def _is_right(self, compiled: nn.Module) -> bool:
        """Compile for the first inputs; return whether the result is right."""
        device = self._runs.problem.device
        first = self._sets[0]
        try:
            with self._runs.scope(self._runs.precision), _compiling_off(device):
                outputs = flatten_outputs(compiled(*first.inputs.args, **first.inputs.kwargs))
        except RuntimeError as error:  # every Dynamo and Inductor failure is one
            if any(is_out_of_memory(cause) for cause in causes(error)):
                raise BadProblemError(
                    f"{self._runs.problem.name}.py: torch.compile of it does not fit "
                    "on the device; reduce the sizes in the file"
                ) from error
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self._notes.append(f"torch.compile fails on the reference: {reason}")
            return False
        for (_, out), truth in zip(outputs, first.truths, strict=True):
            if truth.classify(truth.deviation(out)) is None:
                self._notes.append("torch.compile gives a wrong result: it is no baseline here")
                return False
        return True


def compiled_reference(instance: Instance, workloads: int) -> nn.Module:
    """Return the reference under `torch.compile`, with its defaults.

    With several workloads, each is compiled for its own shapes, which is the stronger baseline.
    """
    if workloads == 1:
        return torch.compile(instance.model)  # type: ignore[return-value]
    limit = torch._dynamo.config.recompile_limit
    torch._dynamo.config.recompile_limit = max(limit, 2 * workloads)
    return torch.compile(instance.model, dynamic=False)  # type: ignore[return-value]


@contextmanager
def _compiling_off(device: str) -> Iterator[None]:
    """Lend the device to other processes while Inductor compiles, which takes seconds and no GPU.

    Pins `torch._inductor.compile_fx.compile_fx`, which `torch.compile` looks up for every graph.
    """
    compile_graph = inductor.compile_fx

    def compile_meanwhile(*args: Any, **kwargs: Any) -> Any:
        with device_lent(device):
            return compile_graph(*args, **kwargs)

    inductor.compile_fx = compile_meanwhile
    try:
        yield
    finally:
        inductor.compile_fx = compile_graph
