"""Sums over the outputs of calls: the proof that they were complete when the device said so.

A sum mixes all words of the outputs, each at its place, with the secret key of the call. So nobody
knows it before the outputs, or from another call. Sums of 64 bits that only add up words would not
do: outputs may differ in their last bits, and a few words with such bits can be chosen so that they
add up to a number that was told before. So words are mixed one after the other in chains, and the
ends of the chains with each other. To meet a number that was told before takes some 2^32 steps.

The kernels are small: a kernel of 20 kB takes 100 us and more to be fetched from memory, since the
overwriting of the L2 cache leaves nothing of it there.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

_CHAINS = tl.constexpr(128)
_WARPS = 4  # a thread for each chain
_LEAST_PIECE_BYTES = 1 << 13
_MOST_PIECES = 1 << 12  # of a call, about: some for each multiprocessor
_WORD = 8

_jit = triton.jit(
    do_not_specialize=["count", "sum_at", "notice_at", "notice"],
    do_not_specialize_on_alignment=["pieces", "key", "sums"],
)
"""Compiles a kernel for all its arguments alike: once, when workers start (see `warm`)."""


@_jit
def _sum_pieces(pieces, key, sums):  # type: ignore[no-untyped-def]
    """Sum pieces of memory, each given by its address, its words and a mask for the last."""
    piece = tl.program_id(0).to(tl.int64)
    row = pieces + 3 * piece
    words = tl.load(row).to(tl.pointer_type(tl.int64))
    tl.store(sums + piece, _summed(words, tl.load(row + 1), tl.load(row + 2), tl.load(key), piece))


@_jit  # type: ignore[untyped-decorator]
def _tell_sum(  # type: ignore[no-untyped-def]
    sums, count: tl.int64, key, sum_at: tl.int64, notice_at: tl.int64, notice: tl.int64
):
    """Store the sum of sums, and give notice of it."""
    last = tl.full((), -1, tl.int64)
    total = _summed(sums, count, last, tl.load(key), last)
    tl.store(sum_at.to(tl.pointer_type(tl.int64)), total)
    tl.atomic_xchg(notice_at.to(tl.pointer_type(tl.int64)), notice, sem="release", scope="sys")


@triton.jit
def _summed(words, count, mask, key, piece):  # type: ignore[no-untyped-def]
    """Sum `count` words; the last counts with the bits of a mask."""
    chain = tl.arange(0, _CHAINS)
    state = _mixed((key + (_CHAINS * piece + chain) * 0x5E3779B97F4A7C15).to(tl.uint64))
    for start in range(0, count, _CHAINS):
        at = start + chain
        word = tl.load(words + at, at < count, other=0)
        word &= tl.where(at == count - 1, mask, -1)
        state = _chained(state, word.to(tl.uint64, bitcast=True))
    # The order of the reduction is the compiler's. Both processes run the same code.
    return tl.reduce(state, 0, _chained).to(tl.int64, bitcast=True)


@triton.jit
def _chained(state, word):  # type: ignore[no-untyped-def]
    """Mix a word into a state; who knows the result and the state has to search for the word."""
    return _mixed(state ^ word) + word


@triton.jit
def _mixed(x):  # type: ignore[no-untyped-def]
    """Mix the bits of words, by half of MurmurHash3's last step with Stafford's constant."""
    x = (x ^ (x >> 32)) * 0xBF58476D1CE4E5B9
    return x ^ (x >> 29)


class Sums:
    """The sums over the outputs of several calls, which `tell` takes; it keeps their addresses.

    Each output is dense, in memory that is there up to a whole word.
    """

    def __init__(self, calls: Sequence[Sequence[torch.Tensor]], device: torch.device) -> None:
        tables = [_pieces(outputs) for outputs in calls]
        # All memory is allocated here: the device may wait for a call when a sum is taken.
        rows = [len(table) for table in tables]
        self._pieces = torch.split(torch.cat(tables).to(device), rows)
        self._sums = torch.empty(max([1, *rows]), dtype=torch.int64, device=device)

    def tell(self, call: int, key: torch.Tensor, sum_at: int, notice_at: int, notice: int) -> None:
        """Sum the outputs of a call with a key, store the sum at an address, and give notice.

        The notice is a number that is at its own address once the sum is there. Enqueues work on
        the current stream and returns.
        """
        pieces = self._pieces[call]
        if len(pieces):
            _sum_pieces[(len(pieces),)](pieces, key, self._sums, num_warps=_WARPS)
        _tell_sum[(1,)](self._sums, len(pieces), key, sum_at, notice_at, notice, num_warps=_WARPS)


def sum_of(outputs: Sequence[torch.Tensor], key: int, device: torch.device) -> int:
    """Return the sum over the outputs of a call with a key, as `Sums.tell` tells it."""
    found = torch.tensor([key, 0, 0], dtype=torch.int64, device=device)
    held, total, notice = found.unbind()
    Sums([outputs], device).tell(0, held, total.data_ptr(), notice.data_ptr(), 1)
    return int(total)


def _pieces(outputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a row for each piece of the outputs: address, words, mask for the last word."""
    tables = [torch.empty(0, 3, dtype=torch.int64)]
    piece_bytes = _piece_bytes(sum(output.nbytes for output in outputs))
    for output in outputs:
        start = torch.arange(0, output.nbytes, piece_bytes)
        size = (output.nbytes - start).clamp(max=piece_bytes)
        words = -(-size // _WORD)
        unused_bits = 8 * (_WORD * words - size)
        mask = torch.where(unused_bits > 0, (1 << (64 - unused_bits).clamp(max=62)) - 1, -1)
        tables.append(torch.stack([output.data_ptr() + start, words, mask], dim=1))
    return torch.cat(tables)


def _piece_bytes(total: int) -> int:
    """Return the size of pieces, whole words, for outputs of so many bytes."""
    return max(_LEAST_PIECE_BYTES, _WORD * -(-total // (_WORD * _MOST_PIECES)))
