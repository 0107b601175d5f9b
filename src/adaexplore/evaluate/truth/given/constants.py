"""Weights that are the same under every seed, and other values in their place.

A branch behind such a weight (LoRA's second factor, a residual branch scaled by zero, a bias that
begins at zero) shows in no output, whatever the seed. A constructor may fold such a weight, so it
gets the other value where the constructor asks PyTorch for the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from adaexplore.evaluate.truth.compare import Truth
from adaexplore.evaluate.wire.tensors import SharedTensor

_FEWEST = 1.0 / 16.0
"""A parameter is constant if this share of its elements is the same under two seeds."""
_SHARE = 0.25  # of a value that is not small, which it becomes more or less
_SMALL = 1e-2  # a branch that is scaled by less may hide below what a class allows
_MOSTLY = 0.5
_FEW = 16  # numbers along one axis: gates, or the shares of a mixture
_CLOSED = -math.log(_SMALL)  # less than minus this is the logit, or the logarithm, of a closed gate
_FILLING = 100.0  # larger numbers take the place of a logit, as -1e9 does in a mask
_BIAS = 0.25  # of the largest value in the place of a bias of zeros
_INITIALISERS = ("zeros_", "ones_", "constant_", "eye_", "dirac_")
_RUNNING = ("running_mean", "running_var")


@dataclass(frozen=True)
class MovedConstants:
    """The truths of the first input set with other values for the constant weights.

    `values` has these by name. A constructor that runs under `seed` within `constants_moved` makes
    all of them but `unmade`.
    """

    seed: int
    values: dict[str, SharedTensor]
    unmade: dict[str, SharedTensor]
    truths: list[Truth]


def moved(tensor: Tensor) -> Tensor:
    """Return other values for a constant weight, which depend on its shape and values alone.

    A small value becomes as large as one in the place of a zero, and keeps its sign. One at
    which gates saturate becomes one at which they do not.
    """
    if tensor.is_complex():
        return torch.view_as_complex(moved(torch.view_as_real(tensor.detach()).contiguous()))
    generator = torch.Generator().manual_seed(sum(i * n for i, n in enumerate(tensor.shape, 1)))
    draw = (2.0 * torch.rand(tensor.shape, generator=generator, device="cpu") - 1.0).to(
        tensor.device
    )
    fan_in = tensor[0].numel() if tensor.dim() > 1 else 1
    for_zero = fan_in**-0.5 if fan_in > 1 else _BIAS
    value = tensor.detach().float()
    other = value * (1.0 + _SHARE * draw)
    other = torch.where(value.abs() < _SMALL, for_zero * draw.abs() * value.sign(), other)
    saturates = _is_closed(value) | _is_closed(-value)
    other = torch.where(saturates, draw.abs() * value.sign(), other)
    return torch.where(value == 0, for_zero * draw, other).to(tensor.dtype)


def constant_weights(
    model: nn.Module, own: Mapping[str, Tensor], other: Mapping[str, Tensor]
) -> list[str]:
    """Name the constant weights of a model, from its states under two seeds.

    Parameters that are the same in both. Of frozen ones, of buffers of one value and of few gates,
    only those that may hide a branch: others (position tables, windows, masks, scales) are part of
    the computation.
    """
    parameters = dict(model.named_parameters(remove_duplicate=False))

    def is_constant(name: str) -> bool:
        one, parameter = own[name], parameters.get(name)
        if parameter is None:
            return (_is_uniform(one) and _may_hide(one)) or _are_gates(one)
        return _is_same(one, other[name]) and (parameter.requires_grad or _may_hide(one))

    return [name for name in own if is_constant(name)]


def move_by_name(
    model: nn.Module, names: Iterable[str], constant: Mapping[str, Tensor]
) -> list[str]:
    """Move those of the constant weights that still have their constant values; name them."""
    state = model.state_dict()
    left = [name for name in names if torch.equal(state[name], constant[name])]
    with torch.no_grad():
        for name in left:
            state[name].copy_(moved(constant[name]))
    return left


@contextmanager
def constants_moved() -> Iterator[None]:
    """Let PyTorch's initialisers give the values of `moved` where they give constants."""
    with ExitStack() as stack:
        for name in _INITIALISERS:
            stack.enter_context(_replaced(nn.init, name, _initialiser))
        stack.enter_context(_replaced(_NormBase, "reset_running_stats", _reset))
        stack.enter_context(_replaced(nn.Parameter, "__new__", _creation))
        yield


@contextmanager
def _replaced(owner: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> Iterator[None]:
    before = vars(owner)[name]
    setattr(owner, name, make(getattr(owner, name)))
    try:
        yield
    finally:
        setattr(owner, name, before)


def _initialiser(initialise: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def initialised(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return _move(initialise(tensor, *args, **kwargs))

    return initialised


def _reset(reset: Callable[[_NormBase], None]) -> Callable[[_NormBase], None]:
    def reset_and_move(norm: _NormBase) -> None:
        reset(norm)
        for name in _RUNNING:
            if (statistic := getattr(norm, name)) is not None:
                _move(statistic)

    return reset_and_move


def _creation(create: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def created(cls: type, *args: Any, **kwargs: Any) -> Tensor:
        parameter = create(cls, *args, **kwargs)
        if _is_uniform(parameter) and (parameter.requires_grad or _may_hide(parameter)):
            parameter.data = moved(parameter.data)  # not in place: its data may be another's too
        return parameter

    return created


def _move(tensor: Tensor) -> Tensor:
    if _may_move(tensor):
        with torch.no_grad():
            tensor.copy_(moved(tensor))
    return tensor


def _is_same(one: Tensor, other: Tensor) -> bool:
    return _may_move(one) and float((one == other).float().mean()) >= _FEWEST


def _is_uniform(tensor: Tensor) -> bool:
    return _may_move(tensor) and bool((tensor == tensor.flatten()[0]).all())


def _may_hide(tensor: Tensor) -> bool:
    """Return True for numbers that may hide a branch.

    Mostly zeros, or all small, all 1, all -1, all the logit of a closed gate; or gates of which
    some are closed.
    """
    value = tensor if tensor.is_complex() else tensor.float()
    if float((value == 0).float().mean()) > _MOSTLY:
        return True
    if any(bool(((value - v).abs() < _SMALL).all()) for v in (0, 1, -1)):
        return True
    if value.is_complex():
        return False
    is_one_logit = bool(value.isfinite().all() and _is_closed(value).all())
    return (is_one_logit and _is_uniform(value)) or _are_gates(value)


def _is_closed(value: Tensor) -> Tensor:
    """Mark what may be the logits of closed gates."""
    return (value < -_CLOSED) & (value >= -_FILLING) | value.isneginf()


def _are_gates(tensor: Tensor) -> bool:
    """Return True for few numbers of which some close a gate, and others are alike or shares."""
    if not _may_move(tensor) or tensor.is_complex():
        return False
    value = tensor.float()
    if not max(value.shape, default=1) == value.numel() <= _FEW:
        return False
    closed = value < _SMALL if bool((value >= 0).all()) else _is_closed(value)
    others = value[~closed]
    if not bool(closed.any()) or not others.numel():
        return False
    return bool((others == others[0]).all()) or abs(float(value.sum()) - 1.0) < _SMALL


def _may_move(tensor: Tensor) -> bool:
    is_number = tensor.is_floating_point() or tensor.is_complex()
    return is_number and tensor.numel() > 0 and not tensor.is_meta
