"""Functions that draw structured inputs, on the current device.

Their sources are copied into the files of problems that need them, so each stands alone, and has a
name that no input has.
"""

from __future__ import annotations

from pathlib import Path

import torch


def draw_offsets(parts: int, total: int, least: torch.Tensor | int = 1) -> torch.Tensor:
    """Return ascending offsets from 0 to `total`, each part at least as long as `least` says.

    Where there is no room for that, all parts are as long as chance will have it.
    """
    lengths = torch.zeros(parts, dtype=torch.int64) + least
    if int(lengths.sum()) > total:
        lengths = torch.zeros(parts, dtype=torch.int64)
    rest = total - int(lengths.sum())
    if rest and parts:
        chosen = torch.multinomial(torch.rand(parts) + 0.1, rest, replacement=True)
        lengths = lengths + torch.bincount(chosen, minlength=parts)
    return torch.cat([lengths[:0], torch.zeros_like(lengths[:1]), lengths.cumsum(0)]).int()


def pages_held(held: int, read: int) -> int:
    """Return the size of a pool of which an eighth more is held than read, at most.

    Pages that nobody reads would only be copied, for every timed call.
    """
    return min(held, read + read // 8 + 1)


def draw_pages(count: int, pool: int) -> torch.Tensor:
    """Return the numbers of different pages of a pool, in random order."""
    return torch.randperm(pool)[:count].int()


def draw_last_pages(
    count: int, size: int, keys: torch.Tensor, queries: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the length of each last page; there are as many keys as queries at least.

    `keys` are the offsets of the pages of each part, and `queries` those of its queries.
    """
    least = torch.ones(count, dtype=torch.int64)
    if queries is not None:
        needed = queries.diff() - (keys.diff() - 1) * size
        least[: len(needed)] = needed[:count].clamp(1, size)
    return (least + (torch.rand(count) * (size + 1 - least)).long()).int()


def renumber_pages(indices: torch.Tensor) -> tuple[int, torch.Tensor]:
    """Return the number of pages that are read, and the indices into a pool of these alone."""
    read, inverse = torch.unique(indices, return_inverse=True)
    return len(read), inverse.to(indices.dtype)


def draw_distinct_rows(rows: int, count: int, pool: int) -> torch.Tensor:
    """Return rows of different indices into a pool; -1 behind them where it has not so many."""
    found = torch.full((rows, count), -1, dtype=torch.int32)
    for row in found:
        chosen = torch.randperm(pool)[:count]
        row[: len(chosen)] = chosen
    return found


def draw_packed_experts(tokens: int, count: int, experts: int) -> torch.Tensor:
    """Return chosen experts: the number in the high 16 bits, a bfloat16 weight in the low ones."""
    chosen = torch.rand(tokens, experts).argsort(-1)[:, :count].int()
    weights = torch.rand(tokens, count).softmax(-1).to(torch.bfloat16)
    return (chosen << 16) | weights.view(torch.int16).int()


def draw_packed_keys(pages: int, tokens: int, heads: int, width: int) -> torch.Tensor:
    """Return pages of float8 keys, and behind these the scale of each token in four bytes."""
    keys = torch.randn(pages, tokens * heads * (width - 4)).clamp(-2, 2).to(torch.float8_e4m3fn)
    scales = 0.5 + torch.rand(pages, tokens * heads)
    packed = torch.cat([keys.view(torch.int8), scales.view(torch.int8)], dim=1)
    return packed.view(pages, tokens, heads, width)


def draw_cos_sin(length: int, dim: int) -> torch.Tensor:
    """Return the cosines of random angles, and behind them the sines."""
    angles = 6.2832 * torch.rand(length, dim // 2)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


def draw_causal_mask(shape: tuple[int, ...]) -> torch.Tensor:
    """Return a mask to be added to scores: the least number where a key is later than a query."""
    return torch.full(shape, torch.finfo(torch.float32).min).triu(1)


def read_stored(
    path: str, start: int, end: int, dtype: torch.dtype, shape: tuple[int, ...]
) -> torch.Tensor:
    """Return the tensor in these bytes of a file."""
    content = bytearray(Path(path).read_bytes()[start:end])
    return torch.frombuffer(content, dtype=dtype).reshape(shape).to(torch.empty(0).device)
