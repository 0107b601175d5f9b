"""Slots: the inputs of the calls of a block, each closed until its call may begin.

On the CPU the judge keeps the inputs in memory of its own, and copies them to a slot when it is
opened. On a GPU, work of the judge between two calls would cost the switch from one process to the
other. So a slot's memory is sealed with a secret key, and the timed process, which gets the key
when the slot is opened, unseals it.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from adaexplore.evaluate.wire.tensors import SharedRing, copy_memory, move_memory, private_ring
from adaexplore.sandbox.user.values import Inputs, map_tensors, tensors_of

_PART = 1 << 22  # words: bounds the memory for the stream of a key
_LATE = 64  # words
_KEYS = 1 << 63

_SLOW_BYTES = 1 << 18  # copying as much takes some 20 us

MakeRing = Callable[[torch.Tensor, int], SharedRing]


class Slots:
    """`count` slots for inputs like `first`, in rings that `make_ring` makes.

    `words` are the memories of each slot, which the timed process unseals. On the CPU, `kept` holds
    the inputs that are not yet in their slots (see `kept_for`).
    """

    def __init__(
        self, first: Inputs, count: int, make_ring: MakeRing, kept: Sequence[SharedRing]
    ) -> None:
        tensors = tensors_of(first)
        self.rings = [make_ring(tensor, count) for tensor in tensors]
        self.inputs = [self._slot(first, i) for i in range(count)]
        self._kept = kept
        self.words = [[ring.words(i) for ring in self.rings] for i in range(count)]
        self._kept_words = [[ring.words(i) for ring in kept] for i in range(count)]
        self._seals = bool(tensors) and tensors[0].is_cuda
        self._keys = [0] * count
        self._open: set[int] = set()

    @property
    def open_slowly(self) -> bool:
        """Return whether opening a slot takes so long that much could be done meanwhile."""
        return sum(words.nbytes for words in self._kept_words[0]) >= _SLOW_BYTES

    def fill(self, index: int, inputs: Inputs) -> None:
        """Put inputs into a slot, closed."""
        tensors = tensors_of(inputs)
        if not self._seals:
            for ring, tensor in zip(self._kept, tensors, strict=True):
                copy_memory(ring.tensors[index], tensor)
            return
        for ring, tensor in zip(self.rings, tensors, strict=True):
            copy_memory(ring.tensors[index], tensor)
        self._keys[index] = 1 + secrets.randbelow(_KEYS - 1)
        self._open.add(index)
        self._close(index)

    def close(self, count: int) -> None:
        """Close the first `count` slots again, with the inputs that they hold."""
        for index in range(count):
            self._close(index)

    def open(self, index: int) -> int:
        """Open a slot; return the key with which the timed process unseals it, 0 for none."""
        if not self._seals:
            for words, kept in zip(self.words[index], self._kept_words[index], strict=True):
                move_memory(words, kept)
        self._open.add(index)
        return self._keys[index]

    def _close(self, index: int) -> None:
        if self._seals and index in self._open:
            unseal(self.words[index], self._keys[index]).complete()
            self._open.remove(index)

    def _slot(self, first: Inputs, index: int) -> Inputs:
        rings = iter(self.rings)
        return map_tensors(lambda _: next(rings).tensors[index], first)


def kept_for(first: Inputs, count: int) -> list[SharedRing]:
    """Make the memory for the inputs of closed slots; none for a GPU, where slots are sealed."""
    on_cpu = [tensor for tensor in tensors_of(first) if not tensor.is_cuda]
    return [private_ring(tensor, count) for tensor in on_cpu]


def unseal(words: Sequence[torch.Tensor], key: int) -> Late:
    """Unseal the memory of a slot (`SharedRing.words`), or seal it if it is not, save for `Late`.

    Key 0 leaves all as it is. The seal is the stream of a random generator with that key, on a GPU
    Philox with 64 bits: the part of a stream that is known does not tell the rest without a search
    through the keys.
    """
    if not key:
        return Late([])
    generator = torch.Generator(words[0].device).manual_seed(key)
    for memory in words:
        for start in range(0, memory.numel(), _PART):
            part = memory[start : start + _PART]
            part.bitwise_xor_(_stream(part, generator))
    places, parts = random.Random(key), []
    for memory in words:
        start = places.randrange(max(memory.numel() - _LATE, 0) + 1)
        part = memory[start : start + _LATE]
        parts.append((part, _stream(part, generator)))
    return Late(parts)


def _stream(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.empty_like(like).random_(-(1 << 63), None, generator=generator)


@dataclass(frozen=True, slots=True)
class Late:
    """Parts of a slot's memory that are sealed twice, at random places, with their second stream.

    A call's stream overwrites the L2 cache between the two. With complete inputs, the work of the
    call could be done meanwhile, on a stream that no timer waits for.
    """

    parts: list[tuple[torch.Tensor, torch.Tensor]]

    def complete(self) -> None:
        """Take off the second seal, immediately before the timed window."""
        for part, stream in self.parts:
            part.bitwise_xor_(stream)
