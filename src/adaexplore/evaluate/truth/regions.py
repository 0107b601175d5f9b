"""The region of an output in which the wrong elements lie: rows, tiles, stretches of memory."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

NEARLY_ALL = 0.98
EVERYWHERE, SCATTERED = "everywhere", "scattered"

_MOST = 0.9
_FEW = 4
_TILES = (256, 128, 64, 32, 16, 8)
_FLAT_TILES = (8192, 4096, 2048, 1024, 512, 256, 128, 64, 32)


def region_of(wrong: Tensor, counted: Tensor) -> str:
    """Describe the region of the wrong elements, if it has a simple form.

    Only `counted` elements speak for or against a form, and some of them may be right by accident.
    """
    if wrong.dim() == 0 or int(wrong.sum()) >= NEARLY_ALL * int(counted.sum()):
        return EVERYWHERE
    return (
        _block(wrong, counted, NEARLY_ALL)
        or _stretch(wrong, counted, NEARLY_ALL)
        or _tiles(wrong, counted)
        or _flat_blocks(wrong, counted)
        or _block(wrong, counted, _MOST)
        or _stretch(wrong, counted, _MOST)
        or SCATTERED
    )


def _block(wrong: Tensor, counted: Tensor, filled: float) -> str:
    """A block: some indices of some axes, and this share of what is within them is wrong."""
    chosen = [_projection(wrong, axis).nonzero().flatten() for axis in range(wrong.dim())]
    inside = counted
    for axis, indices in enumerate(chosen):
        inside = inside.index_select(axis, indices)
    if int(wrong.sum()) < filled * int(inside.sum()):
        return ""
    parts = [
        (_indices(indices.tolist(), size), axis)
        for axis, (indices, size) in enumerate(zip(chosen, wrong.shape, strict=True))
        if len(indices) < size
    ]
    if not all(text for text, _ in parts):
        return ""
    return " and ".join(f"{text} of axis {axis}" for text, axis in parts)


def _projection(wrong: Tensor, axis: int) -> Tensor:
    """Mark the indices of an axis that have a wrong element."""
    return wrong.transpose(0, axis).flatten(1).any(dim=1) if wrong.dim() > 1 else wrong


def _indices(indices: list[int], size: int) -> str:
    """Some indices of an axis in words; empty where they follow no rule."""
    first, last, count = indices[0], indices[-1], len(indices)
    if count == 1:
        return f"index {first}{' (the last)' if first == size - 1 else ''}"
    if last - first + 1 == count:
        if last == size - 1:
            return f"the last {count} of {size} indices"
        return (
            f"the first {count} of {size} indices" if first == 0 else f"indices {first} to {last}"
        )
    step = indices[1] - first
    if indices == list(range(first, last + 1, step)):
        return f"every index {first} + {step}k"
    few = f" ({', '.join(map(str, indices))})" if count <= _FEW else ""
    return f"{count} of {size} indices{few}" if few else ""


def _tiles(wrong: Tensor, counted: Tensor) -> str:
    """Whole tiles of the last two axes, each all wrong or all right; the largest size that fits."""
    if wrong.dim() < 2:
        return ""
    rows, columns = wrong.shape[-2:]
    pairs = sorted(itertools.product(_TILES, _TILES), key=math.prod, reverse=True)
    for height, width in pairs:
        if rows <= height and columns <= width:
            continue
        counts = _whole(wrong, counted, height, width)
        if counts:
            return f"whole tiles of {height} x {width}: {counts} tiles"
    return ""


def _stretch(wrong: Tensor, counted: Tensor, filled: float) -> str:
    """One stretch in memory order, this share of which is wrong."""
    places = wrong.flatten().nonzero().flatten()
    first, last = int(places[0]), int(places[-1])
    if len(places) < filled * int(counted.flatten()[first : last + 1].sum()):
        return ""
    end = "the last " if last == wrong.numel() - 1 else ""
    return f"{end}{last - first + 1} elements in memory order ({first} to {last})"


def _flat_blocks(wrong: Tensor, counted: Tensor) -> str:
    """Whole blocks in memory order, as kernels over flat tensors leave them."""
    flat = wrong.reshape(1, -1), counted.reshape(1, -1)
    for size in (size for size in _FLAT_TILES if size < wrong.numel()):
        counts = _whole(*flat, 1, size)
        if counts:
            return f"whole blocks of {size} in memory order: {counts} blocks"
    return ""


def _whole(wrong: Tensor, counted: Tensor, height: int, width: int) -> str:
    """Count the wrong tiles, if each is nearly all wrong or nearly all right."""
    bad, all_of_it = _per_tile(wrong, height, width), _per_tile(counted, height, width)
    shares = bad[all_of_it > 0] / all_of_it[all_of_it > 0]
    count = int((shares > _MOST).sum())
    return f"{count} of {shares.numel()}" if 0 < count == int((shares > 1 - _MOST).sum()) else ""


def _per_tile(mask: Tensor, height: int, width: int) -> Tensor:
    """Count the set elements of each tile of the last two axes; tiles at the edge have less."""
    rows, columns = mask.shape[-2:]
    flat = mask.reshape(-1, rows, columns).float()
    padded = torch.nn.functional.pad(flat, (0, -columns % width, 0, -rows % height))
    down, across = padded.shape[-2] // height, padded.shape[-1] // width
    return padded.reshape(-1, down, height, across, width).sum(dim=(2, 4))
