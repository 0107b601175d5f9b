"""The place and pattern of wrong elements: a kernel's author looks there first.

`find_mismatch` asks two questions of the wrong elements. What stands there (NaN, zeros, the right
value times 2, another input's result, the right values in other places), and where they lie (the
last rows, whole tiles, everywhere). Everything is computed by the judge, from tensors alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from adaexplore.core.verdict.evaluation import Mismatch
from adaexplore.evaluate.truth.compare import exact
from adaexplore.evaluate.truth.device_memory.pieces import as_real, part_of, pieces
from adaexplore.evaluate.truth.regions import EVERYWHERE, NEARLY_ALL, SCATTERED, region_of

_RELATIVE, _OF_SCALE = 1e-3, 1e-4
"""An element is wrong if it is off by more than this share of itself plus this of the largest."""

_COARSER = 30.0
"""Times that is what a coarser precision does; wrong indices or masks do more somewhere."""

DESCRIBED = 1 << 24
"""Describing a pattern takes some 70 bytes an element; of a larger output a part is described."""

_NOWHERE = (EVERYWHERE, SCATTERED)
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
    stands for all; where none is clearly wrong at all, the share is 0. Of a large output, the
    pattern is that of a part from the first wrong element on, which it names.
    """
    if truth.numel() > DESCRIBED:
        return _find_in_large(out, truth, output, inputs, others or {}, ties)
    got, truth = exact(out), truth.to(out.device)
    others = {name: other.to(out.device) for name, other in (others or {}).items()}
    wrong = ~_close(got, truth)
    if ties is not None:
        wrong &= ~ties
    nans = int(got.isnan().sum()) - int(truth.isnan().sum()) if got.is_floating_point() else 0
    count = int(wrong.sum())
    region = region_of(wrong, wrong | _telling(truth)) if count else ""
    if not count or (region in _NOWHERE and _is_coarse(got, truth, ties)):
        off = (got.double() - truth.double()).abs().nan_to_num(0.0)
        at = int((off if ties is None else off.masked_fill(ties, 0.0)).flatten().argmax())
        pattern = "every element is close: rounding, not logic"
        if count:
            pattern = "every element is nearly right: too low a precision, not logic"
    else:
        at = int(wrong.flatten().to(torch.uint8).argmax())
        what = _arrangement(got, truth, others) or _value(got[wrong], truth[wrong])
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


def _find_in_large(
    out: Tensor,
    truth: Tensor,
    output: str,
    inputs: str,
    others: Mapping[str, Tensor],
    ties: Tensor | None,
) -> Mismatch:
    """Count in all of an output, piece by piece, and describe a part of it."""
    out, device = as_real(out), out.device
    flat, right = out.flatten(), truth.flatten()
    tied = None if ties is None else ties.flatten()
    parts = list(pieces(len(flat), device))
    pairs = ((exact(flat[p]), part_of(right, p, device)) for p in parts)
    scale = max(_largest(part_of(right, p, device)) for p in parts)
    count = nans = 0
    first, worst, worst_off = -1, 0, -1.0
    for part, (got, wanted) in zip(parts, pairs, strict=True):
        counted = torch.ones_like(wanted, dtype=torch.bool) if tied is None else ~tied[part]
        wrong = ~_close(got, wanted, scale=scale) & counted
        if first < 0 and bool(wrong.any()):
            first = part.start + int(wrong.to(torch.uint8).argmax())
        count += int(wrong.sum())
        nans += int((got != got).sum()) - int((wanted != wanted).sum())
        off = (got.double() - wanted.double()).abs().nan_to_num(0.0).masked_fill(~counted, 0.0)
        if float(off.max()) > worst_off:
            worst, worst_off = part.start + int(off.argmax()), float(off.max())
    at, pattern = worst, "every element is close: rounding, not logic"
    if count:
        at, window = first, _window(truth.shape, _unravel(first, truth.shape))
        described = find_mismatch(
            out[window],
            truth[window],
            output=output,
            inputs=inputs,
            others={name: other[window] for name, other in others.items()},
            ties=None if ties is None else ties[window],
        )
        pattern = f"{output}[{_slices(window)}]: {described.pattern}"
    return Mismatch(
        output=output,
        inputs=inputs,
        share=count / truth.numel(),
        first_index=_unravel(at, truth.shape),
        got=float(flat[at]),
        expected=float(right[at]),
        nans=max(nans, 0),
        pattern=pattern,
    )


def _window(shape: torch.Size, first: Sequence[int]) -> tuple[slice, ...]:
    """Return the part of a tensor that is described: from an element on, or that ends the axis."""
    window: list[slice] = []
    for axis, size in enumerate(shape):
        each = math.prod(shape[axis + 1 :])
        count = max(min(DESCRIBED // each, size), 1)
        start = min(first[axis], size - count)
        window.append(slice(start, start + count))
        if each <= DESCRIBED:
            break
    return tuple(window)


def _slices(window: Sequence[slice]) -> str:
    return ", ".join(f"{part.start}:{part.stop}" for part in window)


def _largest(truth: Tensor) -> float:
    """The largest size of what is finite; 1 where nothing is."""
    finite = truth[truth.isfinite()]
    return float(finite.double().abs().max()) if finite.numel() else 1.0


def _is_coarse(got: Tensor, truth: Tensor, ties: Tensor | None) -> bool:
    """Return True if all elements are right but for a coarser rounding."""
    if not truth.is_floating_point():
        return False
    near = _close(got, truth, _COARSER)
    return bool((near if ties is None else near | ties).all())


def _close(a: Tensor, b: Tensor, times: float = 1.0, scale: float | None = None) -> Tensor:
    """Mark the elements of `a` that are those of `b`, but for a multiple of a rounding."""
    if not b.is_floating_point():
        return a == b
    of_scale = _OF_SCALE * (_largest(b) if scale is None else scale)
    near = (a - b).abs() <= times * (_RELATIVE * b.abs() + of_scale)
    return (near & b.isfinite()) | (a == b) | (a.isnan() & b.isnan())


def _alike(a: Tensor, b: Tensor) -> bool:
    """Return True if nearly all elements of two tensors of one shape are close, and telling."""
    return a.shape == b.shape and float(_close(a, b).double().mean()) >= NEARLY_ALL


def _telling(truth: Tensor) -> Tensor:
    """Mark the elements that tell something by being right: a zero is easily right by accident."""
    size = truth.double().abs().nan_to_num(posinf=1.0)
    return size > _OF_SCALE * float(size.max())


def _arrangement(got: Tensor, truth: Tensor, others: Mapping[str, Tensor]) -> str:
    """Right values that belong elsewhere: another input's, or in another order."""
    if truth.numel() < 2 or bool((truth == truth.flatten()[0]).all()) or _alike(got, truth):
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
    if truth.isfinite().all() and got.isfinite().all():
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
    if float(finite.double().mean()) < NEARLY_ALL:
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


def _unravel(flat: int, shape: torch.Size) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        index.append(place)
    return tuple(reversed(index))
