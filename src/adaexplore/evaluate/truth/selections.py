"""Selections of a reference by size, and the elements that are as good.

Where several elements are equal, or equal but for rounding, no kernel can know which of them the
reference takes: a kernel's `topk`, `sort` or `argmax` promises no order among them (a stable sort
does, and is held to it). So an output of indices is judged there by what they point at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from adaexplore.evaluate.truth.steps import Codes, SensitiveRows

_aten = torch.ops.aten
_SELECTING = {
    _aten.topk.default,
    _aten.sort.default,
    _aten.argmax.default,
    _aten.argmin.default,
    _aten.max.dim,
    _aten.min.dim,
    _aten.kthvalue.default,
    _aten.median.dim,
    _aten.nanmedian.dim,
    _aten.mode.default,
}
"""What `argsort`, `msort` and the methods of tensors come down to."""
_COPYING = {_aten.clone.default, _aten._to_copy.default}
_INDICES = {torch.int64, torch.int32, torch.int16, torch.float64, torch.float32}
"""What indices are kept in; others cannot hold them all."""
_AT_ONCE = 1 << 24  # elements: sorting takes several times their memory
_TINY = torch.finfo(torch.float32).tiny  # what is smaller may be flushed to zero


@dataclass(frozen=True)
class _Selection:
    """`indices` into `source` along `dim`, or into all of it where that is None."""

    source: Tensor
    version: int
    dim: int | None
    indices: Tensor

    @property
    def is_intact(self) -> bool:
        """True if the reference has not written to the tensor that it selected from."""
        return self.source._version == self.version

    def rows(self) -> Tensor:
        """The elements that it selected from, a row for each time."""
        if self.dim is None:
            return self.source.reshape(1, -1)
        return self.source.movedim(self.dim, -1).reshape(-1, self.source.shape[self.dim])

    def chosen(self) -> Tensor:
        """The indices, in the same rows."""
        if self.dim is None:
            return self.indices.reshape(1, 1)
        last = self._unreduced(self.indices, self.dim).movedim(self.dim, -1)
        return last.reshape(-1, last.shape[-1])

    def row_numbers(self) -> Tensor:
        """For each of the indices, the row it points into; with the memory layout of `indices`."""
        numbers = torch.zeros(self.indices.shape, dtype=torch.int64, device=self.indices.device)
        if self.dim is not None:
            shape = list(self.source.shape)
            shape[self.dim] = 1
            count = self.source.numel() // self.source.shape[self.dim]
            each = torch.arange(count, device=numbers.device).reshape(shape)
            self._unreduced(numbers, self.dim).copy_(each)
        return _laid_out_as(self.indices, numbers)

    def _unreduced(self, t: Tensor, dim: int) -> Tensor:
        return t if t.dim() == self.source.dim() else t.unsqueeze(dim)


@dataclass(frozen=True)
class Choice:
    """An output of indices, in the rows where the reference might have chosen otherwise.

    `row` is the row of `source` that an element points into, -1 where the choice is clear. `moved`
    is by how much noise larger than rounding moves the elements of `source`, and `floor` the
    relative error that is always allowed.
    """

    row: Tensor
    source: Tensor
    moved: Tensor
    floor: float

    def allows(self, out: Tensor, truth: Tensor) -> Tensor:
        """Mark elements that point at one as large as the truth's, and that no other points at."""
        out, truth = out.to(self.row.device), truth.to(self.row.device)
        if not len(self.source):
            return torch.zeros_like(out, dtype=torch.bool)
        at, length = out.to(torch.int64), self.source.shape[1]
        legal = (self.row >= 0) & (at == out) & (at >= 0) & (at < length)
        row, at, right = self.row[legal], at[legal], truth[legal].to(torch.int64)
        value, wanted = self.source[row, at], self.source[row, right]
        room = self.moved[row, at] + self.moved[row, right] + _room(value, wanted, self.floor)
        off = (value - wanted).abs()
        alike = (value == wanted) | (off.isfinite() & (off <= room))
        alike |= value.isnan() & wanted.isnan()
        places = row * length + at
        _, place, count = torch.unique(places, return_inverse=True, return_counts=True)
        allowed = torch.zeros_like(legal)
        allowed[legal] = alike & (count[place] == 1)
        return allowed


Ties = Tensor | Choice | Codes | SensitiveRows
"""Elements of an output that may fall either way: marked, or judged by what stands there."""


def excused(ties: Ties | None, out: Tensor, truth: Tensor) -> Tensor | None:
    """The elements of an output that do not count, because they might as well be others."""
    return ties if ties is None or isinstance(ties, Tensor) else ties.allows(out, truth)


@dataclass(frozen=True, slots=True)
class Room:
    """The largest difference of elements that are as good as equal.

    `floor` is the relative error of each that is always allowed. What noise does to an element
    counts up to `most` times the largest of its row: where it does more, the function amplifies.
    """

    floor: float
    most: float


@dataclass(frozen=True, slots=True)
class Otherwise:
    """To select the first or the last of elements that are equal once they are rounded."""

    rounded_to: torch.dtype
    last: bool


class Selections(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches what a run selects, and follows the indices to its outputs.

    Views and copies of them are followed, arithmetic on them is not. With `otherwise`, another of
    equal elements is selected.
    """

    def __init__(self, otherwise: Otherwise | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._otherwise = otherwise
        self._made: list[_Selection] = []
        self._indices: dict[int, tuple[int, Tensor, Tensor]] = {}
        self._outputs: list[tuple[int, Tensor] | None] = []

    @property
    def any(self) -> bool:
        """True if anything was selected."""
        return bool(self._made)

    @property
    def all_followed(self) -> bool:
        """True if every output consists of indices."""
        return all(origin is not None for origin in self._outputs)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """One operation."""
        kwargs = kwargs or {}
        if _is_selection(func, args, kwargs):
            return self._select(func, args, kwargs)
        result = func(*args, **kwargs)
        if func in _COPYING and (found := self._origin(args[0])):
            number, rows = found
            self._keep(number, result, _laid_out_as(result, rows))
        return result

    def follow(self, outputs: Sequence[Tensor]) -> None:
        """Notes which of the run's outputs are indices, and into what."""
        self._outputs = [self._origin(output) for output in outputs]
        self._indices.clear()

    def choice(
        self, output: int, truth: Tensor, others: Sequence[Selections], room: Room
    ) -> Choice | None:
        """Return the choices for an output, by the selections of `others` in its place.

        None for one that does not consist of indices.
        """
        origin = self._outputs[output] if self._made else None
        if origin is None:
            return None
        number, row = origin
        selection = self._made[number]
        again = [other._made[number] for other in others if number < len(other._made)]
        every, shape = (selection, *again), selection.source.shape
        if not again or not all(s.is_intact and s.source.shape == shape for s in every):
            return None
        chosen = selection.chosen()
        floor = room.floor if selection.source.is_floating_point() else 0.0
        open_rows = _are_crowded(selection.rows(), chosen, floor)
        for other in again:
            open_rows |= (other.chosen() != chosen).any(1)
        numbers = open_rows.cumsum(0).sub(1).masked_fill(~open_rows, -1)
        sources = [s.rows()[open_rows].double() for s in every]
        choice = Choice(numbers[row], sources[0], _moved(sources, room), floor)
        distinct = choice.allows(truth, truth)[choice.row >= 0]
        return choice if bool(distinct.all()) else None

    def _select(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        source = args[0]
        given = {a.name: a.default_value for a in func._schema.arguments}
        given |= {**dict(zip(given, args, strict=False)), **kwargs}
        dim = None if given["dim"] is None else given["dim"] % source.dim()
        if self._otherwise is None:
            result = func(*args, **kwargs)
        else:
            result = _select_otherwise(func, args, kwargs, dim, self._otherwise)
        indices = result if isinstance(result, Tensor) else result[1]
        selection = _Selection(source, source._version, dim, indices)
        self._keep(len(self._made), indices, selection.row_numbers())
        self._made.append(selection)
        return result

    def _keep(self, number: int, indices: Tensor, rows: Tensor) -> None:
        self._indices[indices.untyped_storage().data_ptr()] = number, indices, rows

    def _origin(self, t: Tensor) -> tuple[int, Tensor] | None:
        """The selection that a tensor's elements are indices of, and the row of each."""
        found = self._indices.get(t.untyped_storage().data_ptr())
        if found is None or t.dtype not in _INDICES or t.dtype is not found[1].dtype:
            return None
        number, indices, rows = found
        if indices.is_inference() or indices._version:  # it may have been written to
            return None
        offset = t.storage_offset() - indices.storage_offset()
        return number, rows.as_strided(t.shape, t.stride(), offset)


def _is_selection(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    if func not in _SELECTING and (func is not _aten.sort.stable or kwargs.get("stable")):
        return False
    return bool(args[0].dim() and args[0].numel() and not args[0].is_inference())


def _are_crowded(rows: Tensor, chosen: Tensor, floor: float) -> Tensor:
    """In which rows something was chosen that others are as good as equal to."""
    some = max(_AT_ONCE // rows.shape[1], 1)
    pairs = zip(torch.split(rows, some), torch.split(chosen, some), strict=True)
    return torch.cat([_crowded(*pair, floor).any(1) for pair in pairs])


def _crowded(rows: Tensor, chosen: Tensor, floor: float) -> Tensor:
    values, places = rows.double().sort(dim=1)
    above, below = values[:, 1:], values[:, :-1]
    close = (above - below <= _room(above, below, floor)) & above.isfinite()
    near = close | (above == below) | (above.isnan() & below.isnan())
    beside = functional.pad(near, (1, 0)) | functional.pad(near, (0, 1))
    return torch.zeros_like(beside).scatter(1, places, beside).gather(1, chosen)


def _room(one: Tensor, other: Tensor, floor: float) -> Tensor:
    return floor * (one.abs() + other.abs()) + _TINY


def _moved(sources: Sequence[Tensor], room: Room) -> Tensor:
    """By how much the elements of the first change in the others, as far as that counts."""
    first = sources[0]
    moved = torch.stack([(other - first).abs() for other in sources[1:]]).amax(0)
    largest = first.abs().nan_to_num(0.0, posinf=0.0).amax(1, keepdim=True)
    return moved.nan_to_num(0.0).minimum(room.most * largest)


def _laid_out_as(other: Tensor, t: Tensor) -> Tensor:
    """A copy with the strides of another tensor."""
    return torch.empty_strided(other.shape, other.stride(), dtype=t.dtype, device=t.device).copy_(t)


def _select_otherwise(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], dim: int | None, how: Otherwise
) -> Any:
    """A selection in which the first or the last of equal elements comes first."""
    source = args[0]
    rounded = source.to(how.rounded_to) if source.is_floating_point() else source
    flat = rounded.flatten() if dim is None else rounded
    along = dim or 0
    turned = flat.flip(along) if how.last else flat
    result = func(turned.reshape(source.shape), *args[1:], **kwargs)
    indices = result if isinstance(result, Tensor) else result[1]
    if how.last:
        indices = flat.shape[along] - 1 - indices
    if isinstance(result, Tensor):
        return indices
    reduced = indices.dim() < source.dim()
    values = source.gather(along, indices.unsqueeze(along) if reduced else indices)
    return (values.squeeze(along) if reduced else values), indices
