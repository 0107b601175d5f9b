"""The last few elements of every timed call's inputs, which arrive when the call begins.

The GPU overwrites its L2 cache before each call, and a CPU wakes its threads: work on inputs that
are complete by then could be done meanwhile, on a stream or a thread that no timer waits for. So a
short stretch of every input, at a place chosen anew for each block, holds other values until then.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import torch

from adaexplore.evaluate.wire.tensors import SharedRing, share_ring, stretch

_ELEMENTS = 64


class LateInputs:
    """Elements withheld from the slots of `rings`, one ring for each input tensor like in `first`.

    `rings` of its own hold the withheld elements, slot by slot, for the candidate's process too.
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
        """Takes new elements out of the first `count` slots, and puts those of `first` there."""
        places = [_place(t) for t in self._first]
        self._places[:count] = [places] * count
        for slots, late, first, place in zip(
            self._slots, self.rings, self._first, places, strict=True
        ):
            length = late.tensors[0].numel()
            kept, given = late.rows(count, 0, length), slots.rows(count, place, length)
            kept.copy_(given)
            given.copy_(stretch(first, place, length).expand(count, -1))

    def places(self, index: int) -> list[int]:
        """Return the places of the withheld elements in each input tensor of a slot."""
        return self._places[index]

    def give(self, index: int, tensors: Sequence[torch.Tensor]) -> None:
        """Puts what was withheld from a slot into `tensors`, which are like its inputs."""
        late = [ring.tensors[index] for ring in self.rings]
        put_late(tensors, late, self._places[index])


def put_late(
    tensors: Sequence[torch.Tensor], late: Sequence[torch.Tensor], places: Sequence[int]
) -> None:
    """Copies the `late` elements of each input tensor to their place in it."""
    for tensor, elements, place in zip(tensors, late, places, strict=True):
        stretch(tensor, place, elements.numel()).copy_(elements)


def _place(tensor: torch.Tensor) -> int:
    return secrets.randbelow(max(stretch(tensor).numel() - _ELEMENTS, 0) + 1)
