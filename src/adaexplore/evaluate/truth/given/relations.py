"""Relations between inputs that all draws show; inputs that are drawn singly would break them.

A begin lies before its end, lengths count what a mask marks, offsets are sums of lengths. The rule
is that of `structure`: what independent draws would show as well is chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from adaexplore.evaluate.truth.given.structure import Structure, is_only_stored, ranges_of
from adaexplore.sandbox.user.values import Inputs, map_tensors, tensors_of

_SAMPLE = 1 << 12
_FIRST = 64
_CHANCE = 10.0  # e^-10 is rare


@dataclass(frozen=True, slots=True)
class OrderedPair:
    """Two inputs of one shape, by number, of which no element of `low` is above that of `high`.

    Nor equal to it where the order is `strict`.
    """

    low: int
    high: int
    strict: bool

    def broken(self, tensors: Sequence[Tensor]) -> Tensor:
        """Mark the elements that are not in order."""
        low, high = tensors[self.low], tensors[self.high]
        return low >= high if self.strict else low > high


def orders_of(draws: Sequence[Inputs], structures: Sequence[Structure]) -> tuple[OrderedPair, ...]:
    """Find the orders that hold in all draws and would not hold among independent numbers."""
    rows = [tensors_of(draw) for draw in draws]
    numbers = [i for i, t in enumerate(rows[0]) if _is_ordered(t) and not _is_bound(structures[i])]
    found = []
    for low, high in itertools.permutations(numbers, 2):
        if rows[0][low].shape != rows[0][high].shape:
            continue
        if rows[0][low].is_floating_point() != rows[0][high].is_floating_point():
            continue
        if structures[low].frozen and structures[high].frozen:
            continue
        pairs = [(row[low], row[high]) for row in rows]
        if not all(map(_never_above, pairs)) or sum(map(_expected_above, pairs)) <= _CHANCE:
            continue
        if not all(torch.equal(*pair) for pair in pairs):  # one input twice is no pair of ends
            found.append(OrderedPair(low, high, strict=all(bool((a < b).all()) for a, b in pairs)))
    return tuple(found)


def in_order(drawn: Inputs, own: Inputs, orders: Sequence[OrderedPair]) -> Inputs:
    """Return inputs with the problem's own in all related tensors wherever an order is broken."""
    if not orders:
        return drawn
    new, old = tensors_of(drawn), tensors_of(own)
    kept = list(new)
    for shape in {new[order.low].shape for order in orders}:
        related = [order for order in orders if new[order.low].shape == shape]
        broken = torch.stack([order.broken(new) for order in related]).any(0)
        for number in {n for order in related for n in (order.low, order.high)}:
            legal = torch.where(broken, old[number], new[number])
            kept[number] = torch.empty_like(new[number]).copy_(legal)
    left = iter(kept)
    return map_tensors(lambda _: next(left), drawn)


def freeze_derived(draws: Sequence[Inputs], structures: list[Structure]) -> None:
    """Freeze the structures of lengths, and of the masks or the offsets that follow from them.

    Tokens with zeros beside them keep these, and are free otherwise.
    """
    rows = [tensors_of(draw) for draw in draws]
    lengths = [i for i, t in enumerate(rows[0]) if _may_count(t)]
    others = [i for i, t in enumerate(rows[0]) if not t.is_floating_point() or structures[i].frozen]
    for length, other in itertools.product(lengths, others):
        if length == other:
            continue
        counts = [_follows(row[length], row[other]) for row in rows]
        if all(counts) and _is_no_chance([row[length] for row in rows]):
            structures[length] = Structure(frozen=True)
            if not structures[other].frozen:
                structures[other] = _padded([row[other] for row in rows])


def _is_ordered(t: Tensor) -> bool:
    stored = t.is_complex() or t.dtype is torch.bool or is_only_stored(t)
    return t.numel() > 0 and not stored


def _is_bound(structure: Structure) -> bool:
    """Return True for numbers that depend on others of their tensor."""
    return structure.symmetric or bool(structure.unit) or structure.row_counts


def _never_above(pair: tuple[Tensor, Tensor]) -> bool:
    first = [t.flatten()[:_FIRST] for t in pair]
    return bool((first[0] <= first[1]).all()) and bool((pair[0] <= pair[1]).all())


def _expected_above(pair: tuple[Tensor, Tensor]) -> float:
    """Return how many elements of the first were above the second's if these were shuffled."""
    low, high = (t.flatten()[:: -(-t.numel() // _SAMPLE)].double() for t in pair)
    below = torch.searchsorted(high.sort().values, low)
    return float(below.sum()) / len(high)


def _may_count(t: Tensor) -> bool:
    integer = not (t.is_floating_point() or t.is_complex() or t.dtype is torch.bool)
    return integer and not is_only_stored(t) and t.dim() > 0 and t.numel() > 1


def _follows(lengths: Tensor, other: Tensor) -> bool:
    """Return True for the lengths of a mask's rows, or of the stretches between offsets."""
    flat = lengths.flatten()
    return any(
        found.numel() == part.numel() and torch.equal(found, part)
        for found, part in itertools.chain(_counts(flat, other), _stretches(flat, other))
    )


def _counts(lengths: Tensor, mask: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield what each row of a mask marks, and what it does not, beside the lengths."""
    if mask.dim() > 1 and mask.numel() == lengths.numel() * mask.shape[-1]:
        marked = (mask != 0).sum(-1).flatten().to(lengths.dtype)
        yield marked, lengths
        yield mask.shape[-1] - marked, lengths


def _stretches(lengths: Tensor, offsets: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the stretches between offsets beside the lengths of these: of all, or but an end's."""
    if offsets.dim() == 1 and _may_count(offsets) and len(offsets) > 2:
        between = offsets.diff().to(lengths.dtype)
        yield from ((between, part) for part in (lengths, lengths[:-1], lengths[1:]))


def _padded(draws: Sequence[Tensor]) -> Structure:
    """Return the structure of tokens among which zeros are padding; a mask is frozen."""
    if draws[0].dtype is torch.bool or draws[0].dim() == 1:
        return Structure(frozen=True)
    low, high = ranges_of(draws, 0)
    is_mask = torch.equal(torch.as_tensor(low), torch.as_tensor(high))
    if is_mask or bool((torch.as_tensor(low) <= 0).any()):
        return Structure(frozen=True)
    return Structure(low=low, high=high, sentinel=0)


def _is_no_chance(draws: Iterable[Tensor]) -> bool:
    """Return True for so many different lengths that no other input is in accord by chance."""
    every = torch.cat([t.flatten() for t in draws])
    return len(every) * math.log(len(every.unique())) > _CHANCE  # type: ignore[no-untyped-call]
