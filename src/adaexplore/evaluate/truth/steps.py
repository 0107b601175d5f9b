"""Steps of a reference: roundings, remainders, casts to codes, comparisons; and values beside one.

An honest kernel's value before a step differs from the reference's by rounding, and where it lies
that near a step it may fall either way. Random noise finds most such elements and, by chance, not
all. So the run is repeated with every value before a step shifted to one side, and to the other, by
as much as noise moves it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from adaexplore.evaluate.truth.device_memory.pieces import (
    as_real,
    computable,
    part_of,
    pieces,
)
from adaexplore.evaluate.truth.error_scale import ErrorScale

_aten = torch.ops.aten
_ROUNDING = {
    _aten.round.default,
    _aten.round.decimals,
    _aten.floor.default,
    _aten.ceil.default,
    _aten.trunc.default,
    _aten.sign.default,
    _aten.sgn.default,
    _aten.signbit.default,
    _aten.bucketize.Tensor,
    _aten.searchsorted.Tensor,
    _aten.heaviside.default,
    _aten.copysign.Tensor,
    _aten.fake_quantize_per_tensor_affine_cachemask.default,
    _aten.fake_quantize_per_channel_affine_cachemask.default,
}
_PASSING = {_aten.hardshrink.default, _aten.threshold.default}
"""Operations that put a number in the place of values on one side, and pass those on the other."""
_COMPARING = {
    getattr(getattr(_aten, name), overload)
    for name in ("gt", "ge", "lt", "le")
    for overload in ("Scalar", "Tensor")
}
_ROUNDS_QUOTIENT: Mapping[Any, Callable[[Tensor], Tensor]] = {
    _aten.floor_divide.default: torch.floor,
    _aten.remainder.Scalar: torch.floor,
    _aten.remainder.Tensor: torch.floor,
    _aten.remainder.Scalar_Tensor: torch.floor,
    _aten.fmod.Scalar: torch.trunc,
    _aten.fmod.Tensor: torch.trunc,
    _aten.frac.default: torch.trunc,
}
"""How operations that divide round the quotient; `div` has it as an argument."""
_KEEPS_REST = {*_ROUNDS_QUOTIENT} - {_aten.floor_divide.default}
_IN_PLACE = {
    _aten.round_.default: _aten.round.default,
    _aten.floor_.default: _aten.floor.default,
    _aten.ceil_.default: _aten.ceil.default,
    _aten.trunc_.default: _aten.trunc.default,
    _aten.sign_.default: _aten.sign.default,
    _aten.heaviside_.default: _aten.heaviside.default,
    _aten.copysign_.Tensor: _aten.copysign.Tensor,
    _aten.threshold_.default: _aten.threshold.default,
    _aten.floor_divide_.Tensor: _aten.floor_divide.default,
    _aten.remainder_.Scalar: _aten.remainder.Scalar,
    _aten.remainder_.Tensor: _aten.remainder.Tensor,
    _aten.fmod_.Scalar: _aten.fmod.Scalar,
    _aten.fmod_.Tensor: _aten.fmod.Tensor,
    _aten.frac_.default: _aten.frac.default,
    _aten.div_.Tensor_mode: _aten.div.Tensor_mode,
}
_SECOND = {
    _aten.searchsorted.Tensor,
    _aten.copy_.default,
    _aten.copysign.Tensor,
    _aten.copysign_.Tensor,
    _aten.remainder.Scalar_Tensor,
}
"""Operations whose second argument comes to a step."""


@dataclass(frozen=True)
class Codes:
    """Integers of an output that rounding may change: `near` by one, `open` to anything."""

    near: Tensor
    open: Tensor | None

    def allows(self, out: Tensor, truth: Tensor) -> Tensor:
        """Mark elements that need not be the truth's."""
        off = out.to(self.near.device, torch.int64) - truth.to(self.near.device, torch.int64)
        beside = off.abs() <= 1
        allowed = self.near & beside
        return allowed if self.open is None else allowed | self.open


@dataclass(frozen=True)
class SensitiveRows:
    """Marked elements, which may be anything, and rows in which the others may be off by a share.

    `allowed` has the share of the scale of its elements by row, 0 where nothing is.
    """

    marks: Tensor
    allowed: Tensor
    error_scale: ErrorScale

    def allows(self, out: Tensor, truth: Tensor) -> Tensor:
        """Mark elements that need not be the truth's."""
        device, width = self.marks.device, self.error_scale.width
        found = self.marks.flatten().clone()
        one, other = as_real(out).flatten(), truth.flatten()
        for part in pieces(len(found), device, width):
            row = torch.arange(part.start, part.stop, device=device) // width
            right, allowed = part_of(other, part, device), self.allowed[row]
            most = allowed * (self.error_scale.scale(part.start, part.stop) + right.abs())
            off = (part_of(one, part, device).double() - right).abs_()
            found[part] |= (allowed > 0) & (off <= most)
        return found.view(truth.shape)


class Steps(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the values before each step of a run; see `Moved` and `Shifted` for later runs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.values: list[Tensor] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one operation."""
        kwargs = kwargs or {}
        return (
            self._step(func, args, kwargs)
            if _is_step(func, args, kwargs)
            else func(*args, **kwargs)
        )

    def _step(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        value = _before(func, args, kwargs)
        self.values.append(value.clone() if func in _IN_PLACE else value)
        return func(*args, **kwargs)


class Moved(Steps):  # type: ignore[no-untyped-call]
    """Measures by how much a run with noise moves the values that `steps` has noted.

    `margins` has for each step how far its values are to be shifted: as far as noise moved them, or
    those beside them in their row; None where that changes nothing.
    """

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._noted = steps.values
        self.margins: list[Tensor | None] = []

    def _step(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        value, place = _before(func, args, kwargs), len(self.margins)
        margin = None
        if place < len(self._noted) and self._noted[place].shape == value.shape:
            margin = _margin(value, self._noted[place])
            one, other = (_shifted(func, args, kwargs, side * margin) for side in (1, -1))
            margin = None if bool((_result(one) == _result(other)).all()) else margin
        self.margins.append(margin)
        return func(*args, **kwargs)


class Shifted(Steps):  # type: ignore[no-untyped-call]
    """Shifts the values before each step by these margins to one `side`, 1 or -1."""

    def __init__(self, margins: Sequence[Tensor | None], side: int) -> None:
        super().__init__()
        self._left = list(margins)
        self._side = side

    def _step(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        margin = self._left.pop(0) if self._left else None
        if margin is None or margin.shape != _before(func, args, kwargs).shape:
            return func(*args, **kwargs)
        result = _shifted(func, args, kwargs, self._side * margin)
        writes = func in _IN_PLACE or func is _aten.copy_.default
        return args[0].copy_(result) if writes else result


def _is_step(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    place = _place(func)
    if len(args) <= place or not isinstance(args[place], Tensor):
        return False
    if not args[place].is_floating_point():
        return False
    if func is _aten._to_copy.default:
        return _is_coarse(kwargs.get("dtype"))
    if func is _aten.copy_.default:
        return _is_coarse(args[0].dtype) and args[0].shape == args[1].shape
    known = func in _ROUNDING or func in _PASSING or func in _COMPARING or func in _IN_PLACE
    return known or _rounds_quotient(func, kwargs) is not None


def _place(func: Any) -> int:
    """Return the place of the argument that comes to a step."""
    return int(func in _SECOND)


def _is_coarse(dtype: torch.dtype | None) -> bool:
    """Return True for integers, bools and codes of eight bits, to which a cast comes by steps."""
    if dtype is None or dtype.is_complex:
        return False
    return not dtype.is_floating_point or dtype.itemsize == 1


def _rounds_quotient(func: Any, kwargs: Mapping[str, Any]) -> Callable[[Tensor], Tensor] | None:
    """Return how an operation rounds the quotient of its arguments, None if it does not."""
    func = _IN_PLACE.get(func, func)
    if func is _aten.div.Tensor_mode:
        return {"floor": torch.floor, "trunc": torch.trunc}.get(kwargs["rounding_mode"])
    return _ROUNDS_QUOTIENT.get(func)


def _divisor(args: tuple[Any, ...]) -> Any:
    return args[1] if len(args) > 1 else 1.0


def _before(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor:
    """Return the values that decide on which side of a step elements fall."""
    if func in _COMPARING:
        value = args[0] - args[1]
    elif _rounds_quotient(func, kwargs):
        value = args[0] / _divisor(args)
    else:
        value = args[_place(func)]
    return value.to(torch.float64)  # type: ignore[no-any-return]


def _result(returned: Any) -> Tensor:
    """Return the first of the tensors that an operation returned."""
    return computable(returned[0] if isinstance(returned, tuple) else returned)


def _margin(value: Tensor, noted: Tensor) -> Tensor:
    moved = (value - noted).abs().nan_to_num_(0.0, 0.0)
    whole = (value == value.round()) & (noted == noted.round())
    moved.masked_fill_(whole, 0.0)  # codes already: a step before has decided
    # Not the root mean square: that of quotients by numbers near zero is theirs alone.
    beside = moved.sqrt().mean(-1, keepdim=True).square() if moved.dim() else moved
    return torch.where(moved > 0, torch.maximum(moved, beside), moved)


def _shifted(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], by: Tensor) -> Any:
    """Return the result with the values before the step shifted, and nothing else changed."""
    if func in _COMPARING:
        return func(args[0] + by, *args[1:], **kwargs)
    if rounded := _rounds_quotient(func, kwargs):
        whole = rounded(args[0] / _divisor(args) + by)
        keeps_rest = _IN_PLACE.get(func, func) in _KEEPS_REST
        return args[0] - _divisor(args) * whole if keeps_rest else whole
    if func is _aten.copy_.default:
        return (args[1] + by.reshape(args[1].shape)).to(args[0].dtype)
    place = _place(func)
    moved = args[place] + by.reshape(args[place].shape)
    given = (*args[:place], moved, *args[place + 1 :])
    func = _IN_PLACE.get(func, func)
    result = func(*given, **kwargs)
    return torch.where(result == moved, args[place], result) if func in _PASSING else result
