"""What candidates are compared with: PyTorch as it is, and `torch.compile` with its defaults."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch
from torch import nn

from adaexplore.evaluate.clock import Clock, clock_for
from adaexplore.evaluate.compare import deviation
from adaexplore.evaluate.runs import ReferenceRuns
from adaexplore.evaluate.truth import CheckedSet
from adaexplore.sandbox.instance import flatten_outputs


class Baselines:
    """The reference's models that are timed beside candidates, in the requested class.

    `times_us` holds the first look at them that `time` took, for `facts`.
    """

    def __init__(self, runs: ReferenceRuns, sets: list[CheckedSet], notes: list[str]) -> None:
        self._runs = runs
        self._sets = sets
        self._notes = notes
        self._clock: Clock = clock_for(runs.problem.device)
        self.compiled = self._compile()
        self.times_us: dict[str, float] = {}

    def blocks(self) -> dict[str, Callable[[int], list[float]]]:
        """By name: how to time a number of calls."""
        models = {"eager": self._runs.instance.model} | (
            {"compile": self.compiled} if self.compiled is not None else {}
        )
        return {name: self._block(model) for name, model in models.items()}

    def time(self) -> None:
        """A first look at the baselines; the caller holds the device."""
        blocks = self.blocks()
        rounds = [{name: median(block(3)) for name, block in blocks.items()} for _ in range(5)]
        self.times_us = {name: median(r[name] for r in rounds) for name in blocks}

    def _block(self, model: nn.Module) -> Callable[[int], list[float]]:
        """Times calls of a baseline in the requested class, rotating the problem's own inputs."""
        arguments = [s.inputs for s in self._sets if s.own]

        def call(i: int) -> object:
            inputs = arguments[i % len(arguments)]
            return model(*inputs.args, **inputs.kwargs)

        def block(count: int) -> list[float]:
            with self._runs.scope(self._runs.precision):
                return self._clock.block(call, count)

        return block

    def _compile(self) -> nn.Module | None:
        """The reference under `torch.compile`, checked on the first inputs; None if it fails."""
        compiled = torch.compile(self._runs.instance.model)
        first = self._sets[0]
        try:
            with self._runs.scope(self._runs.precision):
                outputs = flatten_outputs(compiled(*first.inputs.args, **first.inputs.kwargs))
        except RuntimeError as error:  # every Dynamo and Inductor failure is one
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self._notes.append(f"torch.compile fails on the reference: {reason}")
            return None
        for (_, out), truth in zip(outputs, first.truths, strict=True):
            if truth.classify(deviation(out, truth.value)) is None:
                self._notes.append("torch.compile gives a wrong result: it is no baseline here")
                return None
        return compiled  # type: ignore[return-value]
