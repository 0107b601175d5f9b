"""New inputs for every timed call, and a place for the outputs of every call.

A call on known inputs can be answered from a cache. So the judge draws the problem's own inputs
anew, under secret seeds, before each block of timed calls. Every call of the block has a slot to
itself, and its outputs land in the judge's memory before the block ends. The judge chooses the
outputs to compare after that.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

import torch

from adaexplore.core.problem import Workload
from adaexplore.evaluate.timing.late_inputs import LateInputs
from adaexplore.evaluate.truth.inputs import vary
from adaexplore.evaluate.truth.structure import structure_of
from adaexplore.evaluate.wire.tensors import (
    Layout,
    SharedRing,
    SharedTensor,
    copy_memory,
    fingerprint,
    share_ring,
)
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Inputs, NamedTensor, map_tensors, tensors_of

_MOST = {"cpu": 128, "cuda": 512}  # what a call may hide grows less as a block grows longer
_FEWEST = 2
_DRAWN = Workload()
_DRAW_BUDGET_S = 0.05  # for filling all slots once
_CPU_BYTES = 256 << 20
_CUDA_SHARE = 0.03  # of the device's memory


class FreshInputs:
    """Slots of inputs like `first` and places for outputs like `outputs`, in shared memory.

    Candidates get `slots`, and can write to them. `own_slots` are for the judge's calls: the same,
    but with indices that no other process can put out of range. A block should have `wanted` calls;
    memory, which `sharing` workloads share, and the time that drawing takes may allow fewer. Where
    draws of the workload differ in shape, or not at all, the slots hold variations of `first` (see
    `vary`). Raises `BadProblemError` where the reference cannot take these.
    """

    def __init__(
        self,
        instance: Instance,
        first: Inputs,
        outputs: list[NamedTensor],
        wanted: int,
        workload: Workload = _DRAWN,
        *,
        sharing: int = 1,
    ) -> None:
        self._instance = instance
        self._workload = workload
        self._first = first
        self._structures = [structure_of([t]) for t in tensors_of(first)]
        started = time.perf_counter()
        other = instance.inputs(secrets.randbelow(2**31), workload)
        seconds = time.perf_counter() - started
        self._redraws = _same_form(first, other) and _marks(first) != _marks(other)
        if not self._redraws:
            instance(self._drawn(secrets.randbelow(2**31)))
        tensors = tensors_of(first)
        self.count = _affordable(wanted, seconds, tensors + [t for _, t in outputs], sharing)
        self.rings: list[SharedRing] = [share_ring(t, self.count) for t in tensors]
        self.out_rings: list[SharedRing] = [
            share_ring(t.contiguous(), self.count) for _, t in outputs
        ]
        self._taken: dict[Layout, list[SharedRing]] = {}
        self.slots = [self._slot(i) for i in range(self.count)]
        self.own_slots = [map_tensors(_private, slot) for slot in self.slots]
        self._own_tensors = [tensors_of(slot) for slot in self.own_slots]
        self.late_inputs = LateInputs(self.rings, tensors)
        self._seeds: list[int] = []
        self.refill(self.count)

    def refill(self, count: int) -> None:
        """Put new inputs into the first `count` slots, except the late elements (`complete`)."""
        self._seeds = [secrets.randbelow(2**31) for _ in range(count)]
        for seed, slot, own in zip(self._seeds, self.slots, self.own_slots, strict=False):
            drawn = tensors_of(self._drawn(seed))
            for shared, mine, tensor in zip(tensors_of(slot), tensors_of(own), drawn, strict=True):
                copy_memory(shared, tensor)
                if mine is not shared:
                    copy_memory(mine, tensor)
        self.late_inputs.withhold(count)

    def complete(self, index: int) -> None:
        """Put the late elements of a slot into the judge's own; candidates do so with theirs."""
        self.late_inputs.give(index, self._own_tensors[index])

    def original(self, index: int) -> Inputs | None:
        """Draw the inputs of a slot again; return None if the slot holds something else now."""
        drawn = self._drawn(self._seeds[index])
        slot = self.slots[index]
        pairs = zip(tensors_of(slot), tensors_of(drawn), strict=True)
        if all(torch.equal(a, b) for a, b in pairs) or _marks(slot) == _marks(drawn):
            return drawn  # equal numbers, or where NaN are among them equal bits
        return None

    def poison(self, count: int) -> None:
        """Fill the first `count` places for outputs with values that no honest result holds."""
        for ring in self.out_rings:
            for tensor in ring.tensors[:count]:
                poison(tensor)

    def places(self, layout: Layout) -> list[SharedRing]:
        """Return the places for outputs in a layout.

        A dense output is copied in the order of memory, which takes the same time in every layout.
        """
        pairs = zip(self.out_rings, layout, strict=True)
        return [ring.laid_out(strides) for ring, strides in pairs]

    def take(self, index: int, outputs: list[NamedTensor]) -> None:
        """Copy the outputs of a call to their place, as candidates do after every call."""
        layout = tuple(tensor.stride() for _, tensor in outputs)
        if layout not in self._taken:
            self._taken[layout] = self.places(layout)
        for ring, (_, tensor) in zip(self._taken[layout], outputs, strict=True):
            ring.tensors[index].copy_(tensor)

    def _slot(self, index: int) -> Inputs:
        rings = iter(self.rings)
        return map_tensors(lambda _: next(rings).tensors[index], self._first)

    def _drawn(self, seed: int) -> Inputs:
        if self._redraws:
            return self._instance.inputs(seed, self._workload)
        return vary(self._first, self._structures, seed)


def poison_all(buffers: Sequence[SharedTensor]) -> None:
    """Poison buffers that another process will write to, and wait until it is done."""
    for shared in buffers:
        poison(shared.tensor)
    if buffers[0].tensor.is_cuda:
        torch.cuda.synchronize()


def poison(tensor: torch.Tensor) -> None:
    """Fill a tensor with values that no honest result holds."""
    if tensor.is_floating_point() or tensor.is_complex():
        tensor.fill_(float("nan"))
    elif tensor.dtype is torch.bool:
        tensor.logical_not_()
    else:
        tensor.fill_(torch.iinfo(tensor.dtype).min)


def _affordable(wanted: int, draw_s: float, tensors: list[torch.Tensor], sharing: int) -> int:
    """Return the number of slots that memory and time allow."""
    each = max(sum(t.numel() * t.element_size() for t in tensors), 1)
    device = tensors[0].device
    most = _CPU_BYTES
    if device.type == "cuda":
        most = int(_CUDA_SHARE * torch.cuda.get_device_properties(device).total_memory)
    in_time = int(_DRAW_BUDGET_S / max(draw_s, 1e-6))
    return max(min(wanted, _MOST[device.type], most // sharing // each, in_time), _FEWEST)


def _private(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_floating_point() or tensor.is_complex() else tensor.clone()


def _same_form(a: Inputs, b: Inputs) -> bool:
    """Return whether two draws differ only in the numbers in their tensors."""

    def form(inputs: Inputs) -> list[object]:
        return [(t.shape, t.stride(), t.dtype) for t in tensors_of(inputs)]

    plain = [map_tensors(lambda t: t.new_empty(0), inputs) for inputs in (a, b)]
    return form(a) == form(b) and repr(plain[0]) == repr(plain[1])


def _marks(inputs: Inputs) -> list[int]:
    return [fingerprint(t) for t in tensors_of(inputs)]
