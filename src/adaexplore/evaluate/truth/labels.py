"""Labels of a problem for which an output without the work, or with less of it, would be right.

Every label is found by running the reference, and comes with one line that says why. A speedup on a
labelled problem is real, but it says little about kernels: tables show it apart. Some labels are
remarks, such as `OVERHEAD_BOUND`, and set nothing apart (see `core.labels`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from adaexplore.core.problem import PRECISIONS
from adaexplore.core.verdict.labels import INTEGER_OUTPUT, OVERHEAD_BOUND
from adaexplore.evaluate.truth.compare import Truth, deviation, exact
from adaexplore.evaluate.truth.device_memory.pieces import common_device, part_of, share_marked
from adaexplore.evaluate.truth.discrimination import passes, stand_ins
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import Truths
from adaexplore.sandbox.user.user_code import is_out_of_memory
from adaexplore.sandbox.user.values import Inputs, flatten_outputs

CONSTANT = "constant"
INPUT_INSENSITIVE = "input-insensitive"
WEIGHT_INSENSITIVE = "weight-insensitive"
NONDETERMINISTIC = "nondeterministic"
COLLAPSIBLE = "collapsible"

_HARDLY = 1e-3  # relative change of an output that hardly changes
_NEARLY_ALL = 0.99  # of an output's elements
_ENOUGH = 8
"""Elements of a sparse output: a draw in which all of so many are empty is improbable."""
_FEW_COUNT = 0.1
"""Fewer of a weight's elements than these count where all that it makes is empty."""
_EQUAL = 1e-4  # between gradients in float32 that are equal in exact arithmetic
_REPEATED = 0.45  # of neighbouring slices: pooling by two makes every other pair equal
_DECISIVE = 0.5
"""Runs that differ by this share of what the strictest class allows may fail or pass by chance."""
_OVERHEAD_SHARE = 0.5
_TRIES = 5


def labels_of(runs: ReferenceRuns, truths: Truths) -> dict[str, str]:
    """The labels of a problem that need no timing, each with why."""
    inputs = truths.from_problem[0].inputs
    same = _shares_same(truths)
    found = dict(_without_work(truths, same))
    if INPUT_INSENSITIVE not in found and (why := _is_empty_work(runs, truths, same)):
        found[INPUT_INSENSITIVE] = why
    if WEIGHT_INSENSITIVE not in found and (why := _ignores_weights(truths)):
        found[WEIGHT_INSENSITIVE] = why
    if why := _differs_from_itself(runs, inputs, truths.from_problem[0].truths):
        found[NONDETERMINISTIC] = why
    if CONSTANT not in found and (why := _repeats(truths) or _sums_weights(runs, inputs)):
        found[COLLAPSIBLE] = why
    outputs = [truth.value for truth in truths.from_problem[0].truths]
    if not any(value.is_floating_point() for value in outputs):
        own = runs.run("fp32", inputs)  # truths may be of another dtype
        kinds = sorted({str(out.dtype).removeprefix("torch.") for _, out in own})
        found[INTEGER_OUTPUT] = f"every output is of {' or '.join(kinds)} and must be equal"
    return found


def overhead_label(runs: ReferenceRuns, inputs: Inputs, eager_us: float) -> dict[str, str]:
    """The label of a reference that waits for Python and the dispatcher most of its time.

    On a GPU its host's time for a call is held against `eager_us`, on the CPU the number of its
    operations times what one without work costs. The caller holds the device.
    """

    def call() -> object:
        return runs.instance.model(*inputs.args, **inputs.kwargs)

    with runs.scope(runs.precision):
        if runs.problem.device == "cpu":
            with _CountingMode() as mode:
                call()
            overhead_us = mode.count * _empty_operation_us()
            what = f"{mode.count} operations"
        else:
            overhead_us = _host_us(call)
            what = "launching"
    if overhead_us < _OVERHEAD_SHARE * eager_us:
        return {}
    share = min(overhead_us / eager_us, 1.0)
    why = f"{what} cost {overhead_us:.0f} of eager's {eager_us:.0f} µs ({share:.0%}) without work"
    return {OVERHEAD_BOUND: why}


def _columns(truths: Truths) -> list[list[Tensor]]:
    """Each output that has elements, on all own inputs."""
    own = [[t.value for t in checked.truths] for checked in truths.from_problem]
    return [list(column) for column in zip(*own, strict=True) if column[0].numel()]


def _shares_same(truths: Truths) -> list[float]:
    """The share of each output's elements that are the same on all own inputs; none of one."""
    if len(truths.from_problem) < 2:
        return []
    return [_share_same(values) for values in _columns(truths)]


def _without_work(truths: Truths, same: Sequence[float]) -> Iterator[tuple[str, str]]:
    own = [s.truths for s in truths.from_problem]
    for name, instead in stand_ins(own):
        label = INPUT_INSENSITIVE if name.startswith("another") else CONSTANT
        if passes(own, instead):
            yield label, f"{name} would pass as its output"
    first, *others = own
    changes = [_change(a, b) for o in others for a, b in zip(first, o, strict=True)]
    if changes and max(changes) < _HARDLY:
        yield INPUT_INSENSITIVE, f"other inputs change its output by {max(changes):.1g} (relative)"
    elif same:
        alike = min(map(_share_alike, _columns(truths), same))
        if alike > _NEARLY_ALL:
            yield (
                INPUT_INSENSITIVE,
                f"{alike:.1%} of its output is the same whatever the inputs are",
            )


def _is_empty_work(runs: ReferenceRuns, truths: Truths, same: Sequence[float]) -> str:
    """Return that a sparse output never shows a weight: what it makes is empty on all own inputs.

    Unlike an element that is empty by chance, that is right without the work.
    """
    if not any(share > _NEARLY_ALL for share in same):
        return ""
    counts: dict[str, Tensor] = {}
    for checked in truths.from_problem:
        for name, gradient in _gradients(runs, checked.inputs).items():
            counts[name] = (gradient != 0) | counts.get(name, torch.zeros_like(gradient).bool())
    for name, marks in counts.items():
        if marks.dim() > 1 and float(marks.float().mean()) < _FEW_COUNT:
            return f"nearly all of its output is empty whatever {name} and the inputs are"
    return ""


def _share_same(values: Sequence[Tensor]) -> float:
    """The share of elements that are the same on all inputs, empty or not."""
    first, *others = (v.flatten() for v in values)
    device = common_device(*values)

    def alike(part: slice) -> Tensor:
        one = part_of(first, part, device)
        return torch.stack([_alike(one, part_of(o, part, device)) for o in others]).all(0)

    return share_marked(alike, len(first), device)


def _share_alike(values: Sequence[Tensor], share: float) -> float:
    """The `share` of elements that are the same on all inputs.

    Of a sparse output only those that are not empty somewhere: where they are, only the work tells.
    """
    flat, device = [v.flatten() for v in values], common_device(*values)
    length = len(flat[0])

    def empty(part: slice) -> Tensor:
        return torch.stack([_is_empty(part_of(v, part, device)) for v in flat]).all(0)

    if share <= _NEARLY_ALL or not all(_would_be_missed(v, device) for v in flat):
        return share
    never = share_marked(empty, length, device)
    return (share - never) / (1.0 - never)


def _would_be_missed(flat: Tensor, device: torch.device) -> bool:
    """Return True for an output with enough in it that an empty one is never right by chance."""
    empty = share_marked(lambda part: _is_empty(part_of(flat, part, device)), len(flat), device)
    return (1.0 - empty) * len(flat) >= _ENOUGH


def _is_empty(values: Tensor) -> Tensor:
    return (values == 0) | values.isinf()


def _alike(one: Tensor, other: Tensor) -> Tensor:
    return (one == other) | ((one != one) & (other != other))


def _ignores_weights(truths: Truths) -> str:
    if truths.other_weights is None:
        return ""
    pairs = zip(truths.from_problem[0].truths, truths.other_weights.truths, strict=True)
    change = max(_change(a, b) for a, b in pairs)
    return f"other weights change its output by {change:.1g} (relative)" if change < _HARDLY else ""


def _change(a: Truth, b: Truth) -> float:
    """Return the relative distance of `b` from `a`; 0 where both are zeros."""
    return deviation(b.value, a.value, error_scale=a.error_scale).norm


def _differs_from_itself(runs: ReferenceRuns, inputs: Inputs, truths: Sequence[Truth]) -> str:
    """Return by how much two runs differ, where that could decide a verdict.

    The order of a sum that atomic operations leave open changes the last bits, and no verdict.
    """
    first, second = runs.run("fp32", inputs), runs.run("fp32", inputs)
    for (path, a), (_, b), truth in zip(first, second, truths, strict=True):
        off = deviation(b, exact(a), ties=truth.excused(b))
        bound = next(truth.bounds[p] for p in PRECISIONS if p in truth.bounds)
        if off.norm > _DECISIVE * bound.norm or off.element > _DECISIVE * bound.element:
            return f"{path} of two runs on the same inputs differs by {off.norm:.1g} (relative)"
    return ""


def _repeats(truths: Truths) -> str:
    """Return True if an output is a smaller one, repeated along an axis."""
    for place, truth in enumerate(truths.from_problem[0].truths):
        values = [s.truths[place].value for s in truths.from_problem]
        for axis, size in enumerate(truth.value.shape):
            if size > 1 and truth.value.numel() and all(_is_same_along(v, axis) for v in values):
                return f"{truth.path} is the same along axis {axis}"
    return ""


def _is_same_along(value: Tensor, axis: int) -> bool:
    first, second = value.narrow(axis, 0, 1), value.narrow(axis, 1, 1)
    return torch.equal(first, second) and bool((value == first).all())


def _sums_weights(runs: ReferenceRuns, inputs: Inputs) -> str:
    """Return True if weights enter the output only through their sums along an axis.

    Then the gradient is the same for all that are summed, and the sums could be taken first.
    """
    for name, gradient in _gradients(runs, inputs).items():
        if sum(size > 1 for size in gradient.shape) < 2:
            continue  # a bias: nothing is saved by adding it up
        for axis, size in enumerate(gradient.shape):
            if size > 1 and _repeated_share(gradient, axis) > _REPEATED:
                return f"only sums of {name} along axis {axis} count: they could be taken first"
    return ""


def _gradients(runs: ReferenceRuns, inputs: Inputs) -> dict[str, Tensor]:
    """Of a random combination of the outputs, for every parameter; empty where there are none."""
    with _differentiable(runs.instance.model) as parameters, torch.enable_grad():
        if not parameters:
            return {}
        try:
            outputs = flatten_outputs(runs.instance.model(*inputs.args, **inputs.kwargs))
            target = sum((torch.randn_like(t) * t).sum() for _, t in outputs if t.requires_grad)
            if not isinstance(target, Tensor):
                return {}
            found = torch.autograd.grad(target, list(parameters.values()), allow_unused=True)
        except RuntimeError as error:  # an operation without a gradient, or no memory for it
            if is_out_of_memory(error) and runs.problem.device != "cpu":
                torch.cuda.empty_cache()
            return {}
    return {name: g for name, g in zip(parameters, found, strict=True) if g is not None}


@contextmanager
def _differentiable(model: nn.Module) -> Iterator[dict[str, nn.Parameter]]:
    """The floating-point parameters, asking for gradients; as they were afterwards."""
    parameters = {n: p for n, p in model.named_parameters() if p.is_floating_point()}
    before = {name: p.requires_grad for name, p in parameters.items()}
    try:
        for parameter in parameters.values():
            parameter.requires_grad_(True)
        yield parameters
    finally:
        for name, parameter in parameters.items():
            parameter.requires_grad_(before[name])


def _repeated_share(gradient: Tensor, axis: int) -> float:
    """The share of neighbouring slices that are the same, of those that are not zero."""
    slices = gradient.movedim(axis, 0).flatten(1)
    sizes = slices.norm(dim=1)
    between = torch.linalg.vector_norm(slices[1:] - slices[:-1], dim=1)
    pairs = torch.minimum(sizes[1:], sizes[:-1])
    alive = pairs > _EQUAL * sizes.max()
    if not bool(alive.any()):
        return 0.0
    return float((between <= _EQUAL * pairs)[alive].double().mean())


class _CountingMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operations that reach the dispatcher, without views."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


def _empty_operation_us() -> float:
    """Measure an operation on one number."""
    one = torch.ones(1)
    return min(_timed_us(lambda: one + one) for _ in range(10 * _TRIES))


def _host_us(call: Any) -> float:
    """Measure the least time of a call on the host, while the GPU is idle."""
    times = []
    for _ in range(_TRIES):
        torch.cuda.synchronize()
        times.append(_timed_us(call))
    torch.cuda.synchronize()
    return min(times)  # a busy host only ever adds


def _timed_us(call: Any) -> float:
    started = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started) / 1000.0
