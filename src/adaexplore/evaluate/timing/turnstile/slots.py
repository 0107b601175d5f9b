"""Slots: the inputs of the calls of a block, each closed until its call may begin.

On the CPU the judge keeps the inputs in memory of its own, and copies them to a slot when it is
opened. On a GPU, work of the judge between two calls would cost the switch from one process to the
other. So a slot's memory is sealed with a secret key, and the timed process, which gets the key
when the slot is opened, unseals it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from adaexplore.evaluate.wire.tensors import (
    SharedRing,
    copy_memory,
    move_memory,
    private_ring,
    share_ring,
)
from adaexplore.sandbox.user.values import Inputs, map_tensors, tensors_of

if TYPE_CHECKING:
    from adaexplore.evaluate.timing.turnstile.seals import Seals
    from adaexplore.evaluate.timing.turnstile.sums import Sums

_KEYS = 1 << 63

_SLOW_BYTES = 1 << 18  # copying as much takes some 20 us


class Slots:
    """`count` slots for inputs like `first`, in memory that another process can open if `shared`.

    On a GPU they have `seals`, which the timed process takes off. On the CPU, `kept` holds the
    inputs that are not yet in their slots (see `kept_for`).
    """

    def __init__(
        self,
        first: Inputs,
        count: int,
        kept: Sequence[SharedRing],
        device: torch.device,
        *,
        shared: bool,
    ) -> None:
        tensors = tensors_of(first)
        make_ring = share_ring if shared else private_ring
        self.rings = [make_ring(tensor, count) for tensor in tensors]
        self.inputs = [self._slot(first, i) for i in range(count)]
        self._kept = kept
        self._words = [[ring.words(i) for ring in self.rings] for i in range(count)]
        self._kept_words = [[ring.words(i) for ring in kept] for i in range(count)]
        self.seals = seals_of(self._words, device)
        self._staged: Slots | None = None
        if shared and self.seals:
            self._staged = Slots(first, 1, (), device, shared=False)
        self._keys = [0] * count
        self._open: set[int] = set()

    @property
    def open_slowly(self) -> bool:
        """Return whether opening a slot takes so long that much could be done meanwhile."""
        return sum(words.nbytes for words in self._kept_words[0]) >= _SLOW_BYTES

    def fill(self, index: int, inputs: Inputs) -> None:
        """Put inputs into a slot, closed.

        They are sealed in memory of the judge's own: a kernel that a candidate left on the device
        could read a slot between two steps.
        """
        tensors = tensors_of(inputs)
        if not self.seals:
            for ring, tensor in zip(self._kept, tensors, strict=True):
                copy_memory(ring.tensors[index], tensor)
            return
        if self._staged:
            self._staged.fill(0, inputs)
            self._keys[index] = self._staged._keys[0]
            for words, staged in zip(self._words[index], self._staged._words[0], strict=True):
                words.copy_(staged)
            self._open.discard(index)
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
        """Open a slot; return its key."""
        if not self.seals:
            for words, kept in zip(self._words[index], self._kept_words[index], strict=True):
                move_memory(words, kept)
        self._open.add(index)
        return self.key(index)

    def key(self, index: int) -> int:
        """Return the key that takes off a slot's seal, 0 for none."""
        return self._keys[index]

    def _close(self, index: int) -> None:
        if self.seals and index in self._open:
            self.seals.turn_with(self._keys[index], index)
            self._open.remove(index)

    def _slot(self, first: Inputs, index: int) -> Inputs:
        rings = iter(self.rings)
        return map_tensors(lambda _: next(rings).tensors[index], first)


def kept_for(first: Inputs, count: int) -> list[SharedRing]:
    """Make the memory for the inputs of closed slots; none for a GPU, where slots are sealed."""
    on_cpu = [tensor for tensor in tensors_of(first) if not tensor.is_cuda]
    return [private_ring(tensor, count) for tensor in on_cpu]


def seals_of(slots: Sequence[Sequence[torch.Tensor]], device: torch.device) -> Seals | None:
    """Return the seals on the words of slots on a GPU; None for a CPU."""
    if device.type == "cpu":
        return None
    from adaexplore.evaluate.timing.turnstile.seals import (
        Seals,
        cache_key_of,
    )  # only here: they need Triton

    return Seals(slots, cache_key_of(device))


def sums_over(calls: Sequence[Sequence[torch.Tensor]], device: torch.device) -> Sums | None:
    """Return the sums over the outputs of calls on a GPU; None for a CPU."""
    if device.type == "cpu":
        return None
    from adaexplore.evaluate.timing.turnstile.sums import Sums  # only here: it needs Triton

    return Sums(calls, device)
