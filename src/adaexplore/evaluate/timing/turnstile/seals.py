"""Seals on the memory of a GPU, which the device takes off with a key that it reads itself.

To seal is to exclusive-or memory with the stream of a key, by Philox (Salmon, Moraes, Dror and Shaw
2011, "Parallel random numbers: as easy as 1, 2, 3"): the part of a stream that is known does not
tell the rest without a search through the keys. To unseal is the same once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
import triton
import triton.language as tl

from adaexplore.evaluate.timing.turnstile.sums import Sums

_PAIRS = 1024  # of words, for a program: a draw of Philox has 128 bits
_HALVES = 4096  # of words, which a program writes over the cache
_STEPS = tl.constexpr(9)  # for each of them: drawing takes as long as writing, or longer
_STEPS_BACK = tl.constexpr(4)  # likewise, as long as reading
_SPREAD = tl.constexpr(0x9E3779B1)  # so that no two keys have the same words in another order
_WARPS = 4
_LATE = 64  # words: a power of 2
_LEAST_BYTES = 1 << 25

_jit = triton.jit(
    do_not_specialize=["waiting", "opened", "source", "call", "count", "part"],
    do_not_specialize_on_alignment=[
        *("words", "key", "total", "totals", "cache", "memories", "sizes"),
    ],
)
"""Compiles a kernel for all its arguments alike: once, when workers start (see `warm_triton`)."""


@_jit  # type: ignore[untyped-decorator]
def _await_key(  # type: ignore[no-untyped-def]
    waiting: tl.int64, opened: tl.int64, source: tl.int64, call: tl.int64, key
):
    """Say that the device waits for the key of a call; take the key once it is open."""
    tl.atomic_xchg(waiting.to(tl.pointer_type(tl.int64)), call, sem="release", scope="sys")
    while tl.load(opened.to(tl.pointer_type(tl.int64)), volatile=True) < call:
        pass
    tl.store(key, tl.load(source.to(tl.pointer_type(tl.int64)), volatile=True))


@_jit  # type: ignore[untyped-decorator]
def _exclusive_or(words, key, count: tl.int64, part: tl.int32, pairs: tl.constexpr):  # type: ignore[no-untyped-def]
    """Exclusive-or `count` words with the stream of a key; `part` is the number of the memory."""
    block = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, pairs)
    first, second = _drawn(tl.load(key), block, i, part, 0)
    at = 2 * pairs * block + i
    tl.store(words + at, tl.load(words + at, at < count) ^ first, at < count)
    at += pairs
    tl.store(words + at, tl.load(words + at, at < count) ^ second, at < count)


@_jit  # type: ignore[untyped-decorator]
def _overwrite(cache, key, totals, halves: tl.constexpr):  # type: ignore[no-untyped-def]
    """Overwrite memory with the stream of a key; add the sum of its halves of words to a total.

    Arithmetic takes the time and hides the writing: who does not write saves nothing.
    """
    at = tl.program_id(0) * halves + tl.arange(0, halves)
    parts = key.to(tl.pointer_type(tl.uint32))
    drawn = _stirred(at.to(tl.uint32) * _SPREAD ^ tl.load(parts), tl.load(parts + 1), _STEPS)
    tl.store(cache + at, drawn.to(tl.int32, bitcast=True))
    _add(totals, drawn)


@_jit  # type: ignore[untyped-decorator]
def _read_back(cache, totals, halves: tl.constexpr):  # type: ignore[no-untyped-def]
    """Mix each half of a word of memory with the first total; add their sum to the second.

    Who has not written the memory draws it again: that takes longer than to write and to read it.
    """
    at = tl.program_id(0) * halves + tl.arange(0, halves)
    parts = totals.to(tl.pointer_type(tl.uint32))
    found = tl.load(cache + at).to(tl.uint32, bitcast=True)
    _add(totals + 1, _stirred(found ^ tl.load(parts + 1), tl.load(parts), _STEPS_BACK))


@triton.jit  # type: ignore[untyped-decorator]
def _stirred(x, by, steps: tl.constexpr):  # type: ignore[no-untyped-def]
    """Mix 32 bits: a wide multiplication and a logical operation a step, so nobody is faster."""
    odd = (by | 1).to(tl.uint64)
    for _ in tl.static_range(steps):
        product = x.to(tl.uint64) * odd
        x = (product ^ (product >> 32)).to(tl.uint32) ^ by
    return x


@triton.jit
def _add(total, drawn):  # type: ignore[no-untyped-def]
    own = tl.sum(drawn.to(tl.int32, bitcast=True))
    tl.atomic_add(total, own.to(tl.int64), sem="relaxed")


@_jit  # type: ignore[untyped-decorator]
def _exclusive_or_late(memories, sizes, key, total, late: tl.constexpr):  # type: ignore[no-untyped-def]
    """Exclusive-or some words of each memory, at a place that the key and `total` decide."""
    part = tl.program_id(0)
    words = tl.load(memories + part).to(tl.pointer_type(tl.int64))
    size = tl.load(sizes + part)
    own_key = tl.load(key) + tl.load(total)
    block = tl.full((1,), 0, tl.int64)
    anywhere, _ = _drawn(own_key, block, tl.arange(0, 1), part, 2)
    place = tl.sum((anywhere & 0x7FFFFFFFFFFFFFFF) % (tl.maximum(size - late, 0) + 1))
    i = tl.arange(0, late)
    drawn, _ = _drawn(own_key, block, i, part, 3)
    at = place + i
    tl.store(words + at, tl.load(words + at, at < size) ^ drawn, at < size)


@triton.jit  # type: ignore[untyped-decorator]
def _drawn(key, block, i, part, stream: tl.constexpr):  # type: ignore[no-untyped-def]
    """Draw two words for each `i` of a block from a stream of the key, one for each use."""
    zero = tl.zeros_like(i)
    low = (block & 0x7FFFFFFF).to(tl.int32) + zero
    a, b, c, d = tl.philox(key, i, low, zero + part, zero + stream)
    return _word(a, b), _word(c, d)


@triton.jit
def _word(low, high):  # type: ignore[no-untyped-def]
    return (low.to(tl.uint64) | (high.to(tl.uint64) << 32)).to(tl.int64, bitcast=True)


class CacheKey:
    """A key on a device, and the memory that is overwritten under it: more than the L2 cache holds.

    Overwriting proves itself: the late words of a slot open under the key and a sum of all that was
    written, read back and mixed with a first sum.
    """

    def __init__(self, device: torch.device) -> None:
        self._blocks = -(-max(2 * _cache_bytes(device), _LEAST_BYTES) // (4 * _HALVES))
        self.key = torch.zeros(1, dtype=torch.int64, device=device)
        self._totals = torch.zeros(2, dtype=torch.int64, device=device)
        self.total = self._totals[1:]
        self._cache = torch.empty(_HALVES * self._blocks, dtype=torch.int32, device=device)

    def await_key(self, waiting: int, opened: int, source: int, call: int) -> None:
        """Enqueue a wait for the key of a call, by the addresses of three words.

        The device says in the first that it waits, and takes the key from the third when the
        second is so large as `call`.
        """
        _await_key[(1,)](waiting, opened, source, call, self.key, num_warps=1)

    def overwrite(self) -> None:
        """Overwrite the cache and read it back; enqueues work on the current stream and returns."""
        self._totals.zero_()
        grid = (self._blocks,)
        _overwrite[grid](self._cache, self.key, self._totals, _HALVES, num_warps=_WARPS)
        _read_back[grid](self._cache, self._totals, _HALVES, num_warps=_WARPS)


@cache
def cache_key_of(device: torch.device) -> CacheKey:
    """Return the one `CacheKey` of this process for a device.

    Each kernel has run once by then: loading a kernel may wait for the device, which may wait for
    its inputs.
    """
    cache_key = CacheKey(device)
    words = torch.zeros(3, dtype=torch.int64, device=device)
    waiting, opened, source = (words[i:].data_ptr() for i in range(3))
    cache_key.await_key(waiting, opened, source, 0)
    Seals([[words]], cache_key).turn(0)
    Sums([[words]], device).tell(0, cache_key.key, opened, waiting, 0)
    torch.cuda.synchronize(device)
    return cache_key


def _cache_bytes(device: torch.device) -> int:
    """Return the size of the L2 cache; 0 where kernels are interpreted or only compiled."""
    return torch.cuda.get_device_properties(device).L2_cache_size if device.type == "cuda" else 0


class Seals:
    """The seals on the memories of slots: for each slot the words of its tensors."""

    def __init__(self, slots: Sequence[Sequence[torch.Tensor]], cache: CacheKey) -> None:
        self.cache = cache
        self._slots = slots
        addresses = [[words.data_ptr() for words in slot] for slot in slots]
        sizes = [[words.numel() for words in slot] for slot in slots]
        self._addresses = torch.tensor(addresses, dtype=torch.int64, device=cache.key.device)
        self._sizes = torch.tensor(sizes, dtype=torch.int64, device=cache.key.device)

    def turn_with(self, key: int, index: int) -> None:
        """Unseal or seal a slot with a key (see `turn`)."""
        self.cache.key.fill_(key)
        self.turn(index)

    def turn(self, index: int) -> None:
        """Unseal a slot under the key that `cache` holds, or seal it; overwrite the L2 cache.

        The overwriting comes after all but some late words of each memory, at places that nobody
        knows before: with complete inputs, the work of the call could be done meanwhile. Enqueues
        work on the current stream and returns.
        """
        cache = self.cache
        for part, words in enumerate(self._slots[index]):
            count = words.numel()
            grid = (-(-count // (2 * _PAIRS)),)
            _exclusive_or[grid](words, cache.key, count, part, _PAIRS, num_warps=_WARPS)
        cache.overwrite()
        if self._slots[index]:
            memories, sizes = self._addresses[index], self._sizes[index]
            grid = (len(self._slots[index]),)
            _exclusive_or_late[grid](memories, sizes, cache.key, cache.total, _LATE, num_warps=1)
