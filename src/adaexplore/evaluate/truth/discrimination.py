"""Precision classes that cannot tell a right output from one that ignores its inputs.

Where an output hardly depends on its inputs, a constant is as right as the rounding of a loose
class. What is always allowed is then scaled to what the inputs change, and a class in which an
output without the work would pass all the same is narrowed, or is not on offer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from adaexplore.core.problem import PRECISIONS, Precision
from adaexplore.evaluate.truth.compare import Deviation, Truth, deviation
from adaexplore.evaluate.truth.device_memory.pieces import common_device, part_of, pieces
from adaexplore.evaluate.truth.reference_runs import ReferenceRun

_NEAR = 8.0  # a variation of so many times what is allowed needs no tightening
_ROUNDING = 2.0**-22
_BLURS = 2.0
_CLEARLY = 1.5  # times PyTorch's own error that an output without the work must be off by


def narrowed(
    own: Sequence[ReferenceRun], floors: Mapping[Precision, float], asked: Precision
) -> dict[Precision, float]:
    """The floors of one output, narrower where its input sets differ by little more than them.

    The effect of rounding inputs and parameters stays allowed (`ReferenceRun.blur`), and so do a
    few roundings of the output itself. Outputs in half precision are rounded too coarsely for that.
    """
    first, *others = own
    kept = dict(floors)
    if first.dtype not in (torch.float32, torch.float64) or not others:
        return kept
    varies = min(
        deviation(o.value, first.value, error_scale=first.error_scale).norm for o in others
    )
    if varies > _NEAR * kept[asked]:
        return kept
    for precision, floor in kept.items():
        blurs = [o.blur.get(precision, floor) if o.blur else floor for o in own]
        kept[precision] = min(floor, max(_ROUNDING, varies * floor, _BLURS * max(blurs)))
    return kept


def stand_ins(own: Sequence[Sequence[Truth]]) -> Iterator[tuple[str, list[list[torch.Tensor]]]]:
    """Outputs without the work, by name: for each own input set, what stands in for each output."""
    values = [[t.value for t in truths] for truths in own]
    yield "zeros", [[v.new_zeros(()).expand(v.shape) for v in row] for row in values]
    if len(own) > 1:
        yield "another input's output", values[1:] + values[:1]
        mean = [
            _mean(column) if column[0].is_floating_point() else column[0]
            for column in zip(*values, strict=True)
        ]
        yield "a constant", [mean] * len(own)


def _mean(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    total = tensors[0].clone()
    flat, device = total.view(-1), common_device(*tensors)
    for tensor in tensors[1:]:
        other = tensor.flatten()
        for part in pieces(len(flat), device):
            flat[part] = part_of(flat, part, device) + part_of(other, part, device)
    return total.div_(len(tensors))


def passes(own: Sequence[Sequence[Truth]], instead: list[list[torch.Tensor]]) -> set[Precision]:
    """The classes in which all of these would pass as outputs of the own input sets."""
    reached: Precision = PRECISIONS[0]
    for truths, outs in zip(own, instead, strict=True):
        for truth, out in zip(truths, outs, strict=True):
            found = truth.classify(truth.deviation(out))
            if found is None:
                return set()
            reached = max(reached, found, key=PRECISIONS.index)
    return set(PRECISIONS[PRECISIONS.index(reached) :])


def discriminating(
    own: Sequence[Sequence[Truth]], errors: Sequence[Mapping[Precision, Deviation]]
) -> list[Precision]:
    """The classes on offer, strictest first, less those in which an output without the work passes.

    `errors` are those of PyTorch's own runs in each class, for each output. Where they are clearly
    smaller than what such an output is off by, the class stays, with a bound narrowed to between
    the two. The strictest always stays.
    """
    offered = [p for p in PRECISIONS if all(p in t.bounds for truths in own for t in truths)]
    kept = offered[:1]
    for precision in offered[1:]:
        blind = [instead for _, instead in stand_ins(own) if precision in passes(own, instead)]
        if all(_narrowed(own, instead, errors, precision, kept[-1]) for instead in blind):
            kept.append(precision)
    return kept


def _narrowed(
    own: Sequence[Sequence[Truth]],
    instead: list[list[torch.Tensor]],
    errors: Sequence[Mapping[Precision, Deviation]],
    precision: Precision,
    stricter: Precision,
) -> bool:
    """Narrows one bound of a class so that this does not pass; False where there is no room to."""
    found = [
        (truth.deviation(out).norm, by_class[precision].norm, truth)
        for truths, outs in zip(own, instead, strict=True)
        for truth, out, by_class in zip(truths, outs, errors, strict=True)
    ]
    off, error, truth = max(found, key=lambda one: one[0] / max(one[1], _ROUNDING))
    if off < _CLEARLY * error or off <= truth.bounds[stricter].norm:
        return False
    between = max(math.sqrt(off * error), truth.bounds[stricter].norm)
    truth.bounds[precision] = replace(truth.bounds[precision], norm=between)
    return True
