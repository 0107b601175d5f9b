"""The reference on its device: run in every precision class, and in float64."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import nn

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Precision, Problem, Workload
from adaexplore.evaluate.truth.casts import FLOAT32, NARROW, WideCasts, casts_for_precision
from adaexplore.evaluate.truth.compare import exact
from adaexplore.evaluate.truth.device_memory.pieces import computable, kept
from adaexplore.evaluate.truth.device_memory.room import leaves_room, room_on
from adaexplore.evaluate.truth.precision import baseline_scope, up_to
from adaexplore.evaluate.truth.selections import Selections
from adaexplore.evaluate.truth.steps import Steps
from adaexplore.evaluate.truth.tf32 import EmulatedTf32
from adaexplore.evaluate.truth.widen import limits_noted, limits_of, widened
from adaexplore.sandbox.user.user_code import Instance, is_out_of_memory
from adaexplore.sandbox.user.values import (
    Inputs,
    NamedTensor,
    flatten_outputs,
    map_tensors,
    tensors_of,
)

_DEFAULT = Workload()


class SizeDependsOnDataError(BadProblemError):
    """An output of the reference has another size on other inputs of the same size."""


class ReferenceRuns:
    """Calls of the reference's model on one workload, each as its precision class asks.

    `precision` is the class that candidates may have: the problem's, or "half" for a reference
    whose own floating-point dtype is (`native_half`). Its casts to the dtypes of `wide_casts` are
    none in a float64 run (see `casts`).
    """

    def __init__(
        self,
        problem: Problem,
        instance: Instance,
        first: Inputs,
        workload: Workload = _DEFAULT,
    ) -> None:
        self.problem = problem
        self.instance = instance
        self.workload = workload
        self._dtypes = _own_dtypes(instance, first)
        self.native_half = any(dtype.itemsize <= 2 for dtype in self._dtypes)
        self._has_float64 = torch.float64 in self._dtypes
        self._limits_asked: list[torch.dtype] | None = None
        self._told: torch.dtype | None = None
        self.wide_casts: frozenset[torch.dtype] = frozenset() if self._has_float64 else FLOAT32
        if casts_for_precision(instance.module):
            self.wide_casts = NARROW
        self.precision: Precision = "half" if self.native_half else problem.precision
        self._shapes: list[torch.Size] = []

    @property
    def classes(self) -> tuple[Precision, ...]:
        """The classes on offer, strictest first."""
        if self.native_half:
            return ("half",)
        # TF32 exists on NVIDIA tensor cores only; on the CPU it would be strict fp32 again, unless
        # it is emulated for a target.
        every, on_cpu = up_to(self.precision), self.problem.device == "cpu"
        return tuple(p for p in every if p != "tf32" or not on_cpu or self.problem.target)

    @contextmanager
    def scope(self, precision: Precision) -> Iterator[None]:
        """PyTorch as its users run it in this class."""
        emulated = self.problem.target is not None and precision != "fp32"
        with (
            baseline_scope(precision, self.problem.device, autocast=not self.native_half),
            EmulatedTf32() if emulated else nullcontext(),
        ):
            yield

    def run(
        self, precision: Precision, inputs: Inputs, *, seed_offset: int = 0
    ) -> list[NamedTensor]:
        """The reference's outputs in a class.

        Raises `SizeDependsOnDataError` where they are not of the size that the first run gave.
        """
        torch.manual_seed(self.problem.seed + seed_offset)
        asked: list[torch.dtype] = []
        with self.scope(precision), limits_noted(asked):
            outputs = self.instance(inputs)
        if self._limits_asked is None:
            self._limits_asked = asked
        shapes = [t.shape for _, t in outputs]
        self._shapes = self._shapes or shapes
        if shapes != self._shapes:
            raise SizeDependsOnDataError(self._sizes_differ(outputs))
        return outputs

    def with_weights(self, seed: int) -> ReferenceRuns:
        """The same reference, constructed anew under another seed."""
        other = copy.copy(self)
        other.instance = self.instance.rebuilt(seed, self.problem.mode)
        return other

    def float64_otherwise(self, inputs: Inputs) -> list[torch.Tensor] | None:
        """The outputs of a float64 run of another kind, for a reference that has none else.

        Casts to float32 count in it, or do not, unlike before: one that takes bits of a float32
        apart. Or tensors tell the reference's own dtype: one that checks it. Later runs are of the
        kind that there is.
        """
        before = self.wide_casts
        self.wide_casts = before ^ FLOAT32
        outputs = self.float64(inputs)
        if outputs is None and len(self._dtypes) == 1 and not self._has_float64:
            [self._told] = self._dtypes
            self.wide_casts = before | self._dtypes
            outputs = self.float64(inputs)
        if outputs is None:
            self.wide_casts, self._told = before, None
        return outputs

    def float64(
        self,
        inputs: Inputs,
        noise: Noise | None = None,
        watch: Selections | None = None,
        steps: Steps | None = None,
    ) -> list[torch.Tensor] | None:
        """The outputs of a run in float64, None where an operation has none.

        With `noise`, inputs and parameters are a little off; `watch` sees what is selected, and
        `steps` what is rounded.
        """
        wide = map_tensors(_widened, noise.on_inputs(inputs) if noise else inputs)
        torch.manual_seed(self.problem.seed)
        torch.set_default_dtype(torch.float64)  # for tensors that forward() makes
        try:
            casts = WideCasts(self.wide_casts, self._told) if self.wide_casts else nullcontext()
            limits = limits_of(self._limits_asked or (), of_float32=not self._has_float64)
            with torch.no_grad(), widened(self.instance.model) as double, casts, limits:
                if noise is not None:
                    noise.on_parameters(double)
                with watch or nullcontext(), steps or nullcontext(), self._own_convolutions():
                    outputs = flatten_outputs(double(*wide.args, **wide.kwargs))
                del wide  # as large as the outputs, often
                if watch is not None:
                    watch.follow([t for _, t in outputs])
        except Exception as error:  # of the reference, or of the compiler of its kernels
            if is_out_of_memory(error):
                raise BadProblemError(
                    f"{self.problem.name}.py: its float64 run does not fit on "
                    "the device; reduce the sizes in the file"
                ) from error
            return None  # an operation without float64, a cast to float32, a check of the dtype
        finally:
            torch.set_default_dtype(torch.float32)
        if self._shapes and [t.shape for _, t in outputs] != self._shapes:
            return None  # rounding decides on the size
        values = []
        while outputs:  # the memory of one makes room for the next
            values.append(_as_value(outputs.pop(0)[1]))
        return values

    def strict_with_noise(self, inputs: Inputs, noise: Noise) -> list[torch.Tensor] | None:
        """The outputs of a strict run whose inputs are a little off; None where it takes none such.

        For a reference that has no float64 run. Its parameters stay as they are.
        """
        dtypes = iter([t.dtype for t in tensors_of(inputs)])
        moved = map_tensors(lambda t: t.to(next(dtypes)), noise.on_inputs(inputs))
        try:
            return [exact(t) for _, t in self.run("fp32", moved)]
        except BadProblemError:
            return None

    @contextmanager
    def _own_convolutions(self) -> Iterator[None]:
        """Let PyTorch's own kernels convolve, in a run in float64, and not cuDNN's.

        On an H200 they take 0.25 to 0.7 of the time (docs/results/h200-float64.log), and more
        memory, so only where there is much. cuDNN runs a recurrent layer as a whole.
        """
        cudnn: Any = torch.backends.cudnn
        enabled, modules = cudnn.enabled, self.instance.model.modules()
        has_room = leaves_room(room_on(self.problem.device), 0)
        if has_room and not any(isinstance(module, nn.RNNBase) for module in modules):
            cudnn.enabled = False
        try:
            yield
        finally:
            cudnn.enabled = enabled

    def _sizes_differ(self, outputs: list[NamedTensor]) -> str:
        name = f"{self.problem.name}.py"
        if len(outputs) != len(self._shapes):
            once, then = len(self._shapes), len(outputs)
            return f"{name}: forward() returns {once} tensors on one draw, {then} on another"
        path, now, was = next(
            (path, tuple(t.shape), tuple(was))
            for (path, t), was in zip(outputs, self._shapes, strict=True)
            if t.shape != was
        )
        return (
            f"{name}: {path} has the shape {was} on one draw of the inputs and {now} on another: "
            "its size depends on the data; return one of a fixed size (a mask, or padding and a "
            "count)"
        )


_PERIOD = 4099  # random numbers before they repeat: a prime, so that no axis is in step with them
_UNIT = 3.0**0.5  # uniform between -1 and 1, times this: root mean square 1


class Noise:
    """Random relative errors of one size (root mean square), to ask what rounding does to a result.

    `exempt` says for each input tensor whether it stays as it is, such as a mask. The opposite
    noise has the opposite signs.
    """

    def __init__(self, size: float, exempt: Sequence[bool]) -> None:
        self.size = size
        self._exempt = exempt

    def opposite(self) -> Noise:
        """The same with all signs changed."""
        return Noise(-self.size, self._exempt)

    def on_inputs(self, inputs: Inputs) -> Inputs:
        """The inputs, with noise; those that have some are in float64."""
        left = iter(self._exempt)
        seeds = itertools.count()
        return map_tensors(lambda t: t if next(left) else self._on(t, next(seeds)), inputs)

    def on_parameters(self, model: nn.Module) -> None:
        """Gives every parameter another value; `widened` puts the old one back."""
        for i, parameter in enumerate(model.parameters()):
            parameter.data = self._on(parameter.data, -1 - i)

    def _on(self, t: torch.Tensor, seed: int) -> torch.Tensor:
        if t.is_complex():
            return torch.view_as_complex(self._on(torch.view_as_real(t).contiguous(), seed))
        if not t.is_floating_point():
            return t
        t = t.detach()  # forward() may ask for gradients of its inputs
        generator = torch.Generator(t.device).manual_seed(seed % 2**31)
        noise = torch.rand(_PERIOD, generator=generator, device=t.device).double() * 2.0 - 1.0
        factors = 1.0 + _UNIT * self.size * noise
        if not t.is_contiguous():
            return computable(t) * _repeated(factors, t.numel()).reshape(t.shape)
        moved = torch.empty_like(t, dtype=torch.float64)
        whole = t.numel() // _PERIOD * _PERIOD
        flat, home = computable(t).view(-1), moved.view(-1)
        torch.mul(flat[:whole].view(-1, _PERIOD), factors, out=home[:whole].view(-1, _PERIOD))
        torch.mul(flat[whole:], factors[: len(flat) - whole], out=home[whole:])
        return moved


def _repeated(t: torch.Tensor, length: int) -> torch.Tensor:
    return t.repeat(-(-length // len(t)))[:length]


def _widened(t: torch.Tensor) -> torch.Tensor:
    if t.is_complex():
        return t.detach().to(torch.complex128)
    return t.detach().double() if t.is_floating_point() else t


def _as_value(output: torch.Tensor) -> torch.Tensor:
    """Return an output as it is kept: exact, in the memory for truths of its size."""
    if output.is_complex() or output.dtype is not torch.float64:
        return kept(exact(output))
    return kept(output)


def _own_dtypes(instance: Instance, inputs: Inputs) -> set[torch.dtype]:
    """Return the floating-point dtypes of a reference's parameters and inputs."""
    tensors = (*instance.model.parameters(), *tensors_of(inputs))
    return {t.dtype for t in tensors if t.is_floating_point()}
