"""The reference on its device: run in every precision class, and in float64."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from adaexplore.errors import BadProblemError
from adaexplore.evaluate.compare import exact
from adaexplore.evaluate.precision import baseline_scope, up_to
from adaexplore.evaluate.widen import widened
from adaexplore.problem import Precision, Problem
from adaexplore.sandbox.instance import (
    Inputs,
    Instance,
    NamedTensor,
    flatten_outputs,
    is_out_of_memory,
    map_tensors,
    tensors_of,
)


class ReferenceRuns:
    """Calls of the reference's model, each the way its class asks.

    `precision` is the class that candidates may have: the problem's, or "half" for a reference
    whose own floating-point dtype is (`native_half`).
    """

    def __init__(self, problem: Problem, instance: Instance, first: Inputs) -> None:
        self.problem = problem
        self.instance = instance
        self.native_half = _is_half(instance, first)
        self.precision: Precision = "half" if self.native_half else problem.precision

    @property
    def classes(self) -> tuple[Precision, ...]:
        """The classes on offer, strictest first."""
        if self.native_half:
            return ("half",)
        # TF32 exists on NVIDIA tensor cores only; on the CPU it would be strict fp32 again.
        every = up_to(self.precision)
        return tuple(p for p in every if p != "tf32" or self.problem.device != "cpu")

    def scope(self, precision: Precision) -> AbstractContextManager[None]:
        """PyTorch as its users run it in this class."""
        return baseline_scope(precision, self.problem.device, autocast=not self.native_half)

    def run(
        self, precision: Precision, inputs: Inputs, *, seed_offset: int = 0
    ) -> list[NamedTensor]:
        """The reference's outputs in a class."""
        torch.manual_seed(self.problem.seed + seed_offset)
        with self.scope(precision):
            return self.instance(inputs)

    def float64(self, inputs: Inputs) -> list[torch.Tensor] | None:
        """The outputs of a run in float64, None where an operation has none."""

        def widen(t: torch.Tensor) -> torch.Tensor:
            if t.is_complex():
                return t.to(torch.complex128)
            return t.double() if t.is_floating_point() else t

        wide = map_tensors(widen, inputs)
        torch.manual_seed(self.problem.seed)
        torch.set_default_dtype(torch.float64)  # for tensors that forward() makes
        try:
            with torch.no_grad(), widened(self.instance.model) as double:
                outputs = flatten_outputs(double(*wide.args, **wide.kwargs))
        except (RuntimeError, TypeError, ValueError, AssertionError) as error:
            if is_out_of_memory(error):
                raise BadProblemError(
                    f"{self.problem.name}.py: its float64 run does not fit on "
                    f"{self.problem.device}; reduce the sizes in the file"
                ) from error
            return None  # an operation without float64, a cast to float32 or a check of the dtype
        finally:
            torch.set_default_dtype(torch.float32)
        return [exact(t) for _, t in outputs]


def _is_half(instance: Instance, inputs: Inputs) -> bool:
    """Whether the reference's own floating-point dtype is fp16 or bf16."""
    floats = [
        t.dtype
        for t in (*instance.model.parameters(), *tensors_of(inputs))
        if t.is_floating_point()
    ]
    return any(torch.finfo(dtype).bits <= 16 for dtype in floats)
