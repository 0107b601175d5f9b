"""New inputs for every timed call, and a place for the outputs of every call.

A call on known inputs can be answered from a cache. So the judge draws the problem's own inputs
anew, under secret seeds, before each block of timed calls. Every call of the block has a slot to
itself, which is closed until its turn (see `slots` and `turnstile`), and a place in the judge's
memory for its outputs.
"""

from __future__ import annotations

import itertools
import re
import secrets
import time
from collections.abc import Sequence

import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Workload
from adaexplore.evaluate.timing.turnstile.slots import Slots, kept_for, sums_over
from adaexplore.evaluate.truth.given.inputs import (
    freeze_marked,
    is_redrawn,
    marks_of,
    related,
    vary,
)
from adaexplore.evaluate.truth.given.structure import structure_of
from adaexplore.evaluate.wire.tensors import (
    Layout,
    SharedRing,
    SharedTensor,
    copy_memory,
    private_ring,
    share_ring,
)
from adaexplore.sandbox.user.hang import limited
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Inputs, NamedTensor, map_tensors, tensors_of

_MOST = {"cpu": 128, "cuda": 512}  # what a call may hide grows less as a block grows longer
_FEWEST = 2
_WARMING = 2
_LARGE_BYTES = 1 << 30
_DRAWN = Workload()
_DRAW_BUDGET_S = 0.05  # for filling all slots once
_CPU_BYTES = 512 << 20
_CUDA_SHARE = 0.04  # of the device's memory
_NUMBERS = re.compile(r"(?<!\w)-?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|inf|nan)(?!\w)")


class FreshInputs:
    """Slots of inputs like `first` and places for outputs like `outputs`.

    Candidates get `given`, and can write to it. Baselines work on `own`, and on places of their
    own, whose sums on a GPU are `own_sums`, in memory that no candidate can open; `warming` are
    inputs for them to warm up on. A block should have `wanted` calls; memory, which `sharing`
    workloads share, and the time that drawing takes may allow fewer. Where draws of the workload
    differ in shape, or not at all, the slots hold variations of `first` (see `vary`). Raises
    `BadProblemError` where the reference cannot take these.
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
        started = time.perf_counter()
        seed = secrets.randbelow(2**31)
        other = instance.inputs(seed, workload)
        seconds = time.perf_counter() - started
        self._form = _form(first)
        self._shell = _shell(first)
        self._redraws = self._can_redraw(first, other) and is_redrawn(
            other, instance, seed, workload
        )
        del other
        self._varied: Inputs | None = None
        if not self._redraws:
            self._vary(first)
            instance(self._drawn(secrets.randbelow(2**31)))
        places = [t.contiguous() for _, t in outputs]
        self.count = count = _affordable(wanted, seconds, tensors_of(first), places, sharing)
        kept = kept_for(first, count)
        device = places[0].device
        self.given = Slots(first, count, kept, device, shared=True)
        self.own = Slots(first, count, kept, device, shared=False)
        self.out_rings: list[SharedRing] = [share_ring(place, count) for place in places]
        self._own_out_rings = [private_ring(place, count) for place in places]
        own_places = [[ring.tensors[i] for ring in self._own_out_rings] for i in range(count)]
        self.own_sums = sums_over(own_places, device)
        self._taken: dict[Layout, list[SharedRing]] = {}
        warming = _WARMING if sum(t.nbytes for t in tensors_of(first)) < _LARGE_BYTES else 1
        self.warming = [self._drawn(secrets.randbelow(2**31)) for _ in range(warming)]
        self._seeds: list[int] = []
        for index in range(0 if self._on_cpu else count):
            self.own.fill(index, self._drawn(secrets.randbelow(2**31)))
        self.refill(count)

    def refill(self, count: int) -> None:
        """Put new inputs into the first `count` slots of candidates, and close these."""
        self._seeds = [secrets.randbelow(2**31) for _ in range(count)]
        with limited():
            for index, seed in enumerate(self._seeds):
                self.given.fill(index, self._drawn(seed))

    def prepare_own(self, count: int) -> None:
        """Prepare the first `count` slots of baselines as those of candidates are prepared.

        On a GPU they hold the same inputs again, closed: its cache is overwritten before each call.
        """
        if self._on_cpu:
            self.refill(count)
            poison_rings(self._own_out_rings, count)
        else:
            self.own.close(count)

    def original(self, index: int) -> Inputs | None:
        """Draw the inputs of a slot again; return None if the slot holds something else now."""
        drawn = self._drawn(self._seeds[index])
        slot = self.given.inputs[index]
        pairs = zip(tensors_of(slot), tensors_of(drawn), strict=True)
        if all(torch.equal(a, b) for a, b in pairs) or marks_of(slot) == marks_of(drawn):
            return drawn  # equal numbers, or where NaN are among them equal bits
        return None

    def poison(self, count: int) -> None:
        """Fill the first `count` places for outputs with values that no honest result holds."""
        poison_rings(self.out_rings, count)

    def places(self, layout: Layout) -> list[SharedRing]:
        """Return the places for outputs in a layout.

        A dense output is copied in the order of memory, which takes the same time in every layout.
        """
        pairs = zip(self.out_rings, layout, strict=True)
        return [ring.laid_out(strides) for ring, strides in pairs]

    def take(self, index: int, outputs: list[NamedTensor]) -> None:
        """Copy a baseline's outputs to a place of its own, as candidates do after every call."""
        layout = tuple(tensor.stride() for _, tensor in outputs)
        if layout not in self._taken:
            pairs = zip(self._own_out_rings, layout, strict=True)
            self._taken[layout] = [ring.laid_out(strides) for ring, strides in pairs]
        for ring, (_, tensor) in zip(self._taken[layout], outputs, strict=True):
            ring.tensors[index].copy_(tensor)

    @property
    def _on_cpu(self) -> bool:
        return not self.out_rings[0].memory.tensor.is_cuda

    def _drawn(self, seed: int) -> Inputs:
        """Return the inputs of a seed, the same each time."""
        if self._redraws:
            drawn = self._instance.inputs(seed, self._workload)
            if _form(drawn) == self._form:  # sizes that vary may be equal by chance in two draws
                return self._with_first_numbers(drawn)
        if self._varied is None:
            self._vary(self._drawn_like_first())
        assert self._varied is not None
        return vary(self._varied, self._structures, seed, self._orders)

    def _can_redraw(self, first: Inputs, other: Inputs) -> bool:
        if self._form != _form(other) or marks_of(first) == marks_of(other):
            return False
        if repr(self._shell) == repr(_shell(other)):
            return True
        try:
            self._instance(self._with_first_numbers(other))
        except BadProblemError:
            return False  # numbers that belong to their tensors
        return True

    def _with_first_numbers(self, drawn: Inputs) -> Inputs:
        """Return a draw with the numbers of the first beside its tensors: slots hold tensors."""
        tensors = iter(tensors_of(drawn))
        return map_tensors(lambda _: next(tensors), self._shell)

    def _vary(self, first: Inputs) -> None:
        """Make these inputs the ones of which others are variations."""
        self._varied = map_tensors(_copied, first)  # candidates can write to the original
        self._structures = [structure_of([t]) for t in tensors_of(first)]
        self._orders = related([self._varied], self._structures)
        freeze_marked(self._instance.module, self._structures)

    def _drawn_like_first(self) -> Inputs:
        draws = (self._instance.inputs(seed, self._workload) for seed in itertools.count())
        return next(drawn for drawn in draws if _form(drawn) == self._form)


def poison_rings(rings: Sequence[SharedRing], count: int) -> None:
    """Poison the first `count` tensors of each ring."""
    for ring in rings:
        for tensor in ring.tensors[:count]:
            poison(tensor)


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


def _affordable(
    wanted: int,
    draw_s: float,
    inputs: list[torch.Tensor],
    outputs: list[torch.Tensor],
    sharing: int,
) -> int:
    """Return the number of slots that memory and time allow.

    Candidates and baselines have memory of their own, and the CPU's slots theirs while closed.
    """
    device = outputs[0].device
    each = 2 * sum(t.nbytes for t in outputs)
    each += (3 if device.type == "cpu" else 2) * sum(t.nbytes for t in inputs)
    most = _CPU_BYTES
    if device.type == "cuda":
        most = int(_CUDA_SHARE * torch.cuda.get_device_properties(device).total_memory)
    in_time = int(_DRAW_BUDGET_S / max(draw_s, 1e-6))
    most_in_memory = most // sharing // max(each, 1)
    return max(min(wanted, _MOST[device.type], most_in_memory, in_time), _FEWEST)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    copy = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    copy_memory(copy, tensor)
    return copy


def _form(inputs: Inputs) -> object:
    """Return all of a draw but the numbers in its tensors and beside them."""
    tensors = [(t.shape, t.stride(), t.dtype) for t in tensors_of(inputs)]
    return tensors, _NUMBERS.sub("0", repr(_shell(inputs)))


def _shell(inputs: Inputs) -> Inputs:
    """Return a draw with empty tensors in the place of its own."""
    return map_tensors(lambda t: t.new_empty(0), inputs)
