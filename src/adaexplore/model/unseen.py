"""Comparison of a model with its original on inputs that no search has seen."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Precision
from adaexplore.evaluate.truth.precision import NORM_FACTOR, baseline_scope, floors
from adaexplore.model.calls import ModelCall
from adaexplore.model.tokens import Greedy, can_generate, greedy
from adaexplore.problems.optimized import own_randomness

_FALLBACK: dict[Precision, float] = {"fp32": 1e-4, "tf32": 2e-3, "half": 3e-2}
"""Bounds for a model that does not run in a wider type."""

_EXACT = 1e-12
"""The bound on outputs that are no floating-point numbers: none may differ."""
_NO_DATA = (nn.Module, type, ModuleType, FunctionType)


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest error of a call's outputs, that of the original, and the bound.

    Of the steps in which a decoder generates, `agreeing` have the original's tokens. There are no
    steps where no kernel runs in them.
    """

    error: float
    own_error: float
    allowed: float
    agreeing: int = 0
    steps: int = 0

    @property
    def excess(self) -> float:
        """The error as a multiple of the bound."""
        return self.error / self.allowed

    @property
    def is_same(self) -> bool:
        """True where the outputs are as right as the original's."""
        return self.excess <= 1.0


@dataclass(frozen=True, slots=True)
class _Outputs:
    """The tensors that a call leaves, and the logits of the tokens after it."""

    tensors: list[Tensor]
    followed: Greedy | None


class Original:
    """The outputs of a model on unseen inputs, in its own precision and in a wider type.

    The inputs have the elements of the given ones in another order. Outputs are the tensors of the
    result and of the arguments after the call, such as those of a cache. Those of a decoder are
    also the logits of the tokens that the original generates after the call.
    """

    def __init__(
        self, model: nn.Module, calls: Sequence[ModelCall], precision: Precision, device: str
    ) -> None:
        self._precision = precision
        self._device = device
        with own_randomness():
            torch.manual_seed(1)
            self._calls = [_shuffled(call) for call in calls]
        self._greedy = [self._generated(model, call) for call in self._calls]
        self._own = [
            _Outputs(self._tensors(model, i), self._followed(model, i)) for i in range(len(calls))
        ]
        for call, own in zip(calls, self._own, strict=True):
            if not own.tensors:
                raise BadInputError(f"call {call.name}: the model returns no tensor to compare")
        self._wide: list[_Outputs] | None = None
        try:
            self._wide = self._wide_outputs(model)
        except Exception:  # noqa: BLE001 - whatever the user's model raises in another type
            return

    def differences(
        self, model: nn.Module, runs: Callable[[], int] | None = None
    ) -> list[Difference]:
        """Return how far the outputs of a model are from the original's, by call.

        With `runs`, which counts the runs of kernels, tokens count only where kernels choose them:
        a kernel for a call without a cache runs in no step of a generation with one.
        """
        found = []
        for i, own in enumerate(self._own):
            wide = self._wide[i] if self._wide else own
            each = list(zip(self._tensors(model, i), own.tensors, wide.tensors, strict=True))
            before = runs() if runs else 0
            followed, agreeing, steps = self._followed(model, i), 0, 0
            took_part = runs is None or runs() > before
            if took_part and followed and own.followed and wide.followed:
                each.append((followed.logits, own.followed.logits, wide.followed.logits))
                agreeing, steps = own.followed.agreeing(followed), len(followed.tokens)
            worst = max(starmap(self._difference, each), key=lambda one: one.excess)
            found.append(replace(worst, agreeing=agreeing, steps=steps))
        return found

    def _difference(self, output: Tensor, own: Tensor, wide: Tensor) -> Difference:
        if not output.is_floating_point():
            return Difference(0.0 if torch.equal(output, own) else 1.0, 0.0, _EXACT)
        error, own_error = relative_error(output, wide), relative_error(own, wide)
        floor = floors(own.dtype, from_problem=True)[self._precision]
        allowed = max(NORM_FACTOR[self._precision] * own_error, floor)
        if self._wide is None:
            allowed = _FALLBACK[self._precision]
        return Difference(error, own_error, allowed)

    def _generated(self, model: nn.Module, call: ModelCall) -> Greedy | None:
        """Return the tokens that the original generates, None where it generates none."""
        if not can_generate(model, call):
            return None
        try:
            with self._scope(model):
                found = greedy(model, call)
        except BadInputError:  # such as one that takes other arguments for it
            return None
        return found

    def _tensors(self, model: nn.Module, index: int) -> list[Tensor]:
        own = self._calls[index].copied()
        with self._scope(model):
            result = own.run(model)
        found = tensors_in((result, own.args, own.kwargs))
        return [t.detach().clone() for t in found]

    def _followed(self, model: nn.Module, index: int) -> Greedy | None:
        """Return the logits of a model after the tokens that the original has chosen."""
        chosen = self._greedy[index]
        if chosen is None:
            return None
        with self._scope(model):
            return greedy(model, self._calls[index], chosen.tokens)

    def _scope(self, model: nn.Module) -> Any:
        half = any(p.dtype in (torch.float16, torch.bfloat16) for p in model.parameters())
        return baseline_scope(self._precision, self._device, autocast=not half)

    def _wide_outputs(self, model: nn.Module) -> list[_Outputs]:
        floats = [p.dtype for p in model.parameters() if p.is_floating_point()]
        dtype = torch.float32 if self._precision == "half" else torch.float64
        if torch.float32 in floats:
            dtype = torch.float64
        wide = copy.deepcopy(model).to(dtype)
        found = []
        for call, chosen in zip(self._calls, self._greedy, strict=True):
            cast = call.mapped(lambda t: t.to(dtype) if t.is_floating_point() else t)
            with baseline_scope("fp32", self._device, autocast=False):
                followed = greedy(wide, cast, chosen.tokens) if chosen else None
                result = cast.run(wide)
            found.append(_Outputs(tensors_in((result, cast.args, cast.kwargs)), followed))
        return found


def tensors_in(value: Any) -> list[Tensor]:
    """Return the tensors in a value: in collections, and in the attributes of objects."""
    found: list[Tensor] = []
    known: set[int] = set()
    pending = [value]
    while pending:
        each = pending.pop()
        if id(each) in known:
            continue
        known.add(id(each))
        if isinstance(each, Tensor):
            found.append(each)
        elif isinstance(each, Mapping):
            pending += each.values()
        elif isinstance(each, list | tuple):
            pending += each
        elif hasattr(each, "__dict__") and not isinstance(each, _NO_DATA):
            pending += vars(each).values()
    return found


def relative_error(output: Tensor, expected: Tensor) -> float:
    """Return the norm of the difference over that of the expected; 1 for other infinities."""
    if output.shape != expected.shape:
        return 1.0
    one, other = output.double(), expected.double()
    finite = other.isfinite()
    if not torch.equal(one.isfinite(), finite):
        return 1.0
    one, other = one[finite], other[finite]
    norm = float(other.norm())
    return float((one - other).norm()) / norm if norm else float((one - other).norm())


def _shuffled(call: ModelCall) -> ModelCall:
    return call.mapped(_reordered)


def _reordered(tensor: Tensor) -> Tensor:
    """Return the elements in another order; masks and positions stay as they are."""
    is_position = not tensor.is_floating_point() and tensor.dim() < 2
    if tensor.dtype == torch.bool or is_position or not bool(tensor.isfinite().all()):
        return tensor
    order = torch.randperm(tensor.numel()).to(tensor.device)
    return tensor.reshape(-1)[order].reshape(tensor.shape)
