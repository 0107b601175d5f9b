"""The place and pattern of wrong elements: a kernel's author looks there first.

`find_mismatch` asks two questions of the wrong elements. What stands there (NaN, zeros, the right
value times 2, another input's result, the right values in other places), and where they lie (the
last rows, whole tiles, everywhere). Everything is computed by the judge, from tensors alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import torch
from torch import Tensor

from adaexplore.core.evaluation import Mismatch
from adaexplore.evaluate.truth.compare import exact

_RELATIVE, _OF_SCALE = 1e-3, 1e-4
"""An element is wrong if it is off by more than this share of itself plus this of the largest."""

_COARSER = 30.0
"""Times that is what a coarser precision does; wrong indices or masks do more somewhere."""

_NEARLY_ALL = 0.98
_MOST = 0.9
_FEW = 4
_SORTABLE = 1 << 24
_TILES = (256, 128, 64, 32, 16, 8)
_FLAT_TILES = (8192, 4096, 2048, 1024, 512, 256, 128, 64, 32)

_EVERYWHERE, _SCATTERED = "everywhere", "scattered"
_NOWHERE = (_EVERYWHERE, _SCATTERED)
"""Regions that speak of no place."""


def find_mismatch(
    out: Tensor,
    truth: Tensor,
    *,
    output: str,
    inputs: str,
    others: Mapping[str, Tensor] | None = None,
    ties: Tensor | None = None,
) -> Mismatch:
    """Describe the difference of `out` from `truth`, a tensor of its shape after `compare.exact`.

    `output` and `inputs` are names; `others` holds the truths of other input sets by name; elements
    marked in `ties` do not count. Where no element is wrong by more than rounding, the worst one
    stands for all; where none is clearly wrong at all, the share is 0.
    """
    got = exact(out)
    wrong = ~_close(got, truth)
    if ties is not None:
        wrong &= ~ties
    nans = int(got.isnan().sum()) - int(truth.isnan().sum()) if got.is_floating_point() else 0
    count = int(wrong.sum())
    region = _region(wrong, wrong | _telling(truth)) if count else ""
    if not count or (region in _NOWHERE and _is_coarse(got, truth, ties)):
        off = (got.double() - truth.double()).abs().nan_to_num(0.0)
        at = int((off if ties is None else off.masked_fill(ties, 0.0)).flatten().argmax())
        pattern = "every element is close: rounding, not logic"
        if count:
            pattern = "every element is nearly right: too low a precision, not logic"
    else:
        at = int(wrong.flatten().to(torch.uint8).argmax())
        what = _arrangement(got, truth, others or {}) or _value(got[wrong], truth[wrong])
        pattern = "; ".join(filter(None, [what, region]))
    return Mismatch(
        output=output,
        inputs=inputs,
        share=count / max(truth.numel(), 1),
        first_index=_unravel(at, truth.shape),
        got=float(got.flatten()[at]),
        expected=float(truth.flatten()[at]),
        nans=max(nans, 0),
        pattern=pattern,
    )


def _is_coarse(got: Tensor, truth: Tensor, ties: Tensor | None) -> bool:
    """Return True if all elements are right but for a coarser rounding."""
    if not truth.is_floating_point():
        return False
    near = _close(got, truth, _COARSER)
    return bool((near if ties is None else near | ties).all())


def _close(a: Tensor, b: Tensor, times: float = 1.0) -> Tensor:
    """Mark the elements of `a` that are those of `b`, but for a multiple of a rounding."""
    if not b.is_floating_point():
        return a == b
    finite = b[b.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 1.0
    near = (a - b).abs() <= times * (_RELATIVE * b.abs() + _OF_SCALE * scale)
    return (near & b.isfinite()) | (a == b) | (a.isnan() & b.isnan())


def _alike(a: Tensor, b: Tensor) -> bool:
    """Return True if nearly all elements of two tensors of one shape are close, and telling."""
    return a.shape == b.shape and float(_close(a, b).double().mean()) >= _NEARLY_ALL


def _telling(truth: Tensor) -> Tensor:
    """Mark the elements that tell something by being right: a zero is easily right by accident."""
    size = truth.double().abs().nan_to_num(posinf=1.0)
    return size > _OF_SCALE * float(size.max())


def _arrangement(got: Tensor, truth: Tensor, others: Mapping[str, Tensor]) -> str:
    """Right values that belong elsewhere: another input's, or in another order."""
    if truth.numel() < 2 or bool((truth == truth.flatten()[0]).all()):
        return ""
    for name, other in others.items():
        if not _alike(other, truth) and _alike(got, other):
            return f"the right result of other inputs ({name}): stale or cached"
    for i, j in itertools.combinations(range(truth.dim()), 2):
        swapped = truth.transpose(i, j)
        if _alike(got, swapped.reshape(truth.shape)):
            return f"axes {i} and {j} are swapped (the result is stored transposed)"
    for axis, size in enumerate(truth.shape):
        for step in (1, -1):
            if size > 2 and _alike(
                got.narrow(axis, max(step, 0), size - 1),
                truth.narrow(axis, max(-step, 0), size - 1),
            ):
                return f"shifted by {step:+d} along axis {axis}"
    if truth.numel() <= _SORTABLE and truth.isfinite().all() and got.isfinite().all():
        ordered = (got.flatten().sort().values, truth.flatten().sort().values)
        if float(_close(*ordered).double().mean()) == 1.0:
            return "the right values in the wrong places (permuted)"
    return ""


def _value(got: Tensor, truth: Tensor) -> str:
    """Describe the common value of the wrong elements."""
    if not got.is_floating_point():
        if got.dtype is torch.bool:
            return ""
        if bool((got == torch.iinfo(got.dtype).min).all()):
            return "never written"
    elif bool(got.isnan().all()):
        return "NaN, or never written"
    elif bool(got.isinf().all()):
        return "infinite"
    if truth.numel() < 2 or bool((got == 0).all()):
        return "zero" if bool((got == 0).all()) else ""
    if bool((got == got[0]).all()):
        return f"one value, {float(got[0]):.4g}"
    got, truth = got.double(), truth.double()
    finite = got.isfinite() & truth.isfinite()
    if float(finite.double().mean()) < _NEARLY_ALL:
        return ""
    got, truth = got[finite], truth[finite]
    large = truth.abs() > 0.1 * truth.abs().max()
    if bool(large.any()):
        factor = float((got[large] / truth[large]).median())
        if factor and math.isfinite(factor) and _alike(got, factor * truth):
            return f"the right values times {_factor(factor)}"
    offset = float((got - truth).median())
    if offset and truth.numel() > 2 and _alike(got, truth + offset):
        return f"the right values plus {offset:.4g}"
    return ""


def _factor(factor: float) -> str:
    """A factor as a person would write it: 2, 1/64, -1, 0.7071."""
    for number, text in ((factor, "{}"), (1 / factor, "1/{}")):
        if abs(number) >= 1 and abs(number - round(number)) < 2e-3 * abs(number):
            return "-1" if round(number) == -1 else text.format(round(number))
    return f"{factor:.4g}"


def _region(wrong: Tensor, counted: Tensor) -> str:
    """Describe the region of the wrong elements, if it has a simple form.

    Only `counted` elements speak for or against a form, and some of them may be right by accident.
    """
    if wrong.dim() == 0 or int(wrong.sum()) >= _NEARLY_ALL * int(counted.sum()):
        return _EVERYWHERE
    return (
        _block(wrong, counted, _NEARLY_ALL)
        or _stretch(wrong, counted, _NEARLY_ALL)
        or _tiles(wrong, counted)
        or _flat_blocks(wrong, counted)
        or _block(wrong, counted, _MOST)
        or _stretch(wrong, counted, _MOST)
        or _SCATTERED
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


def _unravel(flat: int, shape: torch.Size) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        index.append(place)
    return tuple(reversed(index))
