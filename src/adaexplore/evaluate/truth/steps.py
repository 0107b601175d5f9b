"""Steps of a reference: roundings, casts to codes, comparisons; and values that lie beside one.

An honest kernel's value before a step differs from the reference's by rounding, and where it lies
that near a step it may fall either way. Random noise finds most such elements and, by chance, not
all. So the run is repeated with every value before a step shifted to one side, and to the other, by
as much as noise moves it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from adaexplore.evaluate.truth.pieces import computable

_aten = torch.ops.aten
_ROUNDING = {
    _aten.round.default,
    _aten.round.decimals,
    _aten.floor.default,
    _aten.ceil.default,
    _aten.trunc.default,
    _aten.sign.default,
    _aten.bucketize.Tensor,
}
_COMPARING = {
    getattr(getattr(_aten, name), overload)
    for name in ("gt", "ge", "lt", "le")
    for overload in ("Scalar", "Tensor")
}
_IN_PLACE = {
    _aten.round_.default: _aten.round.default,
    _aten.floor_.default: _aten.floor.default,
    _aten.ceil_.default: _aten.ceil.default,
    _aten.trunc_.default: _aten.trunc.default,
}


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
        self.values.append(_before(func, args))
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
        value, place = _before(func, args), len(self.margins)
        margin = None
        if place < len(self._noted) and self._noted[place].shape == value.shape:
            margin = _margin(value, self._noted[place])
            one, other = (_shifted(func, args, kwargs, side * margin) for side in (1, -1))
            margin = None if bool((computable(one) == computable(other)).all()) else margin
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
        if margin is None or margin.shape != _before(func, args).shape:
            return func(*args, **kwargs)
        result = _shifted(func, args, kwargs, self._side * margin)
        return args[0].copy_(result) if func in _IN_PLACE else result


def _is_step(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    if not args or not isinstance(args[0], Tensor) or not args[0].is_floating_point():
        return False
    if func is _aten._to_copy.default:
        dtype = kwargs.get("dtype")
        return dtype is not None and (not dtype.is_floating_point or dtype.itemsize == 1)
    return func in _ROUNDING or func in _COMPARING or func in _IN_PLACE


def _before(func: Any, args: tuple[Any, ...]) -> Tensor:
    """Return the values that decide on which side of a step elements fall."""
    value = args[0] - args[1] if func in _COMPARING else args[0]
    return value.to(torch.float64)  # type: ignore[no-any-return]


def _margin(value: Tensor, noted: Tensor) -> Tensor:
    moved = (value - noted).abs().nan_to_num_(0.0, 0.0)
    whole = (value == value.round()) & (noted == noted.round())
    moved.masked_fill_(whole, 0.0)  # codes already: a step before has decided
    beside = moved.square().mean(-1, keepdim=True).sqrt() if moved.dim() else moved
    return torch.where(moved > 0, torch.maximum(moved, beside), moved)


def _shifted(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], by: Tensor) -> Tensor:
    first = args[0] + by.reshape(args[0].shape) if func not in _COMPARING else args[0] + by
    return _IN_PLACE.get(func, func)(first, *args[1:], **kwargs)  # type: ignore[no-any-return]
