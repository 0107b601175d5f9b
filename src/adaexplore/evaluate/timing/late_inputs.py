"""Late inputs: a few elements of every timed call's inputs, which arrive when the call begins.

Before each call, a GPU overwrites its L2 cache, and a CPU wakes its threads. With complete inputs,
a candidate could do its work in this time, on a stream or a thread that no timer waits for. So a
short stretch of every input, at a new random place for each block, holds other values until the
call.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import torch

from adaexplore.evaluate.wire.tensors import SharedRing, share_ring, stretch

_ELEMENTS = 64


class LateInputs:
    """The late elements of the slots of `rings`, with one ring for each input tensor of `first`.

    The attribute `rings` holds the late elements by slot; the candidate's process reads it too.
    """

    def __init__(self, rings: Sequence[SharedRing], first: Sequence[torch.Tensor]) -> None:
        self._slots = rings
        self._first = first
        self.rings = [
            share_ring(t.new_empty(min(_ELEMENTS, stretch(t).numel())), len(ring.tensors))
            for ring, t in zip(rings, first, strict=True)
        ]
        count = len(rings[0].tensors) if rings else 0
        self._places = [[0] * len(rings) for _ in range(count)]

    def withhold(self, count: int) -> None:
        """Move new late elements out of the first `count` slots; those of `first` replace them."""
        places = [_place(t) for t in self._first]
        self._places[:count] = [places] * count
        for slots, late, first, place in zip(
            self._slots, self.rings, self._first, places, strict=True
        ):
            length = late.tensors[0].numel()
            taken, replaced = late.rows(count, 0, length), slots.rows(count, place, length)
            taken.copy_(replaced)
            replaced.copy_(stretch(first, place, length).expand(count, -1))

    def places(self, index: int) -> list[int]:
        """Return the places of the late elements in each input tensor of a slot."""
        return self._places[index]

    def give(self, index: int, tensors: Sequence[torch.Tensor]) -> None:
        """Put the late elements of a slot into `tensors`, which have the form of its inputs."""
        late = [ring.tensors[index] for ring in self.rings]
        put_late(tensors, late, self._places[index])


def put_late(
    tensors: Sequence[torch.Tensor], late: Sequence[torch.Tensor], places: Sequence[int]
) -> None:
    """Copy the `late` elements of each input tensor to their place in it."""
    for tensor, elements, place in zip(tensors, late, places, strict=True):
        stretch(tensor, place, elements.numel()).copy_(elements)


def _place(tensor: torch.Tensor) -> int:
    return secrets.randbelow(max(stretch(tensor).numel() - _ELEMENTS, 0) + 1)
