"""The roofline: the least time that a problem can take on this device (Williams et al. 2009).

Least traffic is every input, parameter and output once, parameters packed as narrowly as the
precision class allows. Operations are those of the reference's
matrix products, convolutions and attention. Both are held against what
this device was measured to do, in the same session and with the clock that candidates are timed
with; nothing of it is kept on disk, where a candidate might find it.

Only the memory's side can refuse a candidate: a product of three matrices may honestly need a
fraction of the reference's operations, but what an output depends on has to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from adaexplore.core.problem import Precision
from adaexplore.core.protocols.clock import Clock
from adaexplore.core.verdict.evaluation import BoundBy, Roofline
from adaexplore.core.verdict.facts import ReferenceRoofline
from adaexplore.core.verdict.labels import ALGEBRA
from adaexplore.evaluate.kernels.count import bytes_of
from adaexplore.evaluate.timing.operations import (
    CPU_SHAPES,
    has_bf16_products,
    operations_of,
    packed_product,
)
from adaexplore.evaluate.truth.device_memory.pieces import computable
from adaexplore.evaluate.truth.precision import baseline_scope, up_to
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Inputs, flatten_outputs, map_tensors, tensors_of

REFUSED_BELOW = 0.5
"""A candidate this much faster than its unavoidable traffic allows did not do the work.

Not 1: what was measured is no law.
"""

CLEARLY_BELOW = 0.85
"""A time below this share of the least time of the reference's work is no error of the peaks."""

EMULATION = 3
"""An fp32 product takes three of TF32 or bf16 when it is emulated ("tf32x3", "bf16x3")."""

_AS_PRECISE: Mapping[Precision, Precision] = {"tf32": "half"}
"""fp16 has TF32's 11 bits of significand: scaled into its range, operands lose nothing by it."""

PACKED_BYTES: Mapping[Precision, int] = {"fp32": 4, "tf32": 2, "half": 2}
"""What a constructor can pack an element of a weight into in a class: with a scale, 16 bits hold
the 11 bits of significand that TF32 rounds to, and 8 bits are less than half precision asks for."""

_PARTLY = 0.05  # a tensor of which less matters is looked up in, not read
_LONG = (
    64  # elements of a row that do not all happen not to matter, such as negative ones in a ReLU
)
_SAMPLE = 4096
_COPY_BYTES = 512 << 20
_CPU_COPY_BYTES = (64 << 10, 256 << 20)
_CUDA_SIZES: Mapping[Precision, int] = {"fp32": 4096, "tf32": 8192, "half": 8192}
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class Work:
    """The least work of one call of the reference.

    `bytes` is the least traffic and `flops` the reference's operations, 0 where they could not be
    `counted`. `unavoidable_bytes` is the part of the traffic that no honest candidate escapes:
    elements of inputs on which the output depends, and outputs that are no mere copies and do not
    fit into the cache.
    """

    bytes: int
    flops: int
    unavoidable_bytes: int
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Peaks:
    """Measured rates of the device: copying, matrix products by class, and an empty launch.

    `overhead_us` is the time of the smallest kernel, by the clock that candidates are timed with.
    """

    bytes_per_s: float
    flops_per_s: Mapping[Precision, float]
    overhead_us: float

    def flops_in(self, precision: Precision) -> float:
        """The fastest product that can be precise enough for the class, emulation included."""
        classes = {*up_to(precision), _AS_PRECISE.get(precision, precision)}
        allowed = [rate for p, rate in self.flops_per_s.items() if p in classes]
        looser = [rate / EMULATION for rate in self.flops_per_s.values()]
        return max(allowed + looser)


@dataclass(frozen=True, slots=True)
class _Reach:
    """The share of a tensor on which an output is known to depend, and the least to be `read`."""

    share: float
    read: float


_ALL = _Reach(0.0, 1.0)
"""The reach of a tensor without a derivative: nothing is known to matter, all may."""


class RooflineModel:
    """The least time of one workload on one device, in microseconds."""

    def __init__(self, work: Work, peaks: Peaks, precision: Precision) -> None:
        self._work = work
        self._peaks = peaks
        self._limits: dict[BoundBy, float] = {
            "memory": 1e6 * work.bytes / peaks.bytes_per_s,
            "compute": 1e6 * work.flops / peaks.flops_in(precision),
            "overhead": peaks.overhead_us,
        }
        self.bound_by: BoundBy = max(self._limits, key=lambda name: self._limits[name])
        self.floor_us = self._limits[self.bound_by]

    def roofline(self, time_us: float) -> Roofline:
        """Return the place of a measured time on the roofline."""
        return Roofline(
            floor_us=self.floor_us,
            bound_by=self.bound_by,
            share=self.floor_us / time_us,
            bytes_per_s=1e6 * self._work.bytes / time_us,
            flops_per_s=1e6 * self._work.flops / time_us,
        )

    def objection(self, time_us: float) -> str | None:
        """Return the reason not to believe a time, in one line; None if there is none."""
        least_us = 1e6 * self._work.unavoidable_bytes / self._peaks.bytes_per_s
        if time_us >= REFUSED_BELOW * least_us:
            return None
        return (
            f"faster than the memory allows: {time_us:.3g} us for "
            f"{self._work.unavoidable_bytes / 2**20:.3g} MiB that must be read or written, which "
            f"takes {least_us:.3g} us at this device's {self._peaks.bytes_per_s / 1e9:.0f} GB/s"
        )

    def labels(self, time_us: float) -> tuple[str, ...]:
        """Name a time that is clearly below what the reference's work takes."""
        least_us = max(self._limits["memory"], self._limits["compute"])
        return (ALGEBRA,) if time_us < CLEARLY_BELOW * least_us else ()

    def facts(self) -> ReferenceRoofline:
        """Return the floor with the work and the peaks that set it."""
        return ReferenceRoofline(
            bytes=self._work.bytes,
            flops=self._work.flops,
            unavoidable_bytes=self._work.unavoidable_bytes,
            floor_us=self.floor_us,
            bound_by=self.bound_by,
            bytes_per_s=self._peaks.bytes_per_s,
            flops_per_s=self._peaks.flops_per_s,
            overhead_us=self._peaks.overhead_us,
        )


def work_of(instance: Instance, inputs: Inputs, precision: Precision) -> Work:
    """The work of a call of the reference on `inputs`, in the narrowest form of a class.

    A derivative that is not zero proves that an element matters; one that is zero proves nothing,
    so `unavoidable_bytes` is a lower bound (and 0 on a CPU, whose caches nothing empties).
    """
    given, weights = tensors_of(inputs), list(instance.model.parameters())
    results = [t for _, t in instance(inputs)]
    flops = operations_of(instance, inputs)
    first = _are_first(results)
    made = [
        once and not _is_copied(t, [*given, *weights])
        for t, once in zip(results, first, strict=True)
    ]
    reaches = _dependence(instance, inputs, made) or [_ALL] * (len(given) + len(weights))
    sizes = [*map(bytes_of, given), *(_packed_bytes(t, precision) for t in weights)]
    traffic = sum(bytes_of(t) for t, once in zip(results, first, strict=True) if once)
    traffic += sum(int(size * reach.read) for size, reach in zip(sizes, reaches, strict=True))
    unavoidable = 0
    if instance.device.type == "cuda":
        read = zip(given, reaches[: len(given)], strict=True)
        unavoidable = sum(int(bytes_of(t) * reach.share) for t, reach in read)
        written = sum(
            _written_bytes(t) for t, is_made in zip(results, made, strict=True) if is_made
        )
        cache = torch.cuda.get_device_properties(instance.device).L2_cache_size
        unavoidable += max(written - cache, 0)
    return Work(traffic, flops or 0, unavoidable, counted=flops is not None)


def measure_peaks(device: str, clock: Clock, work_bytes: int, precision: Precision) -> Peaks:
    """Measures the device in a few hundred milliseconds; the caller holds it exclusively.

    A GPU's memory is measured on more than its caches hold, which the clock empties before each
    call. On a CPU, where nothing empties them, on as many bytes as the problem moves. It counts as
    fast as it reads or copies, whichever is faster: a kernel with packed weights mostly reads.
    """
    on_cpu = device == "cpu"
    least, most = _CPU_COPY_BYTES
    size = min(max(work_bytes // 8 * 4, least), most) if on_cpu else _COPY_BYTES
    source, target = (torch.ones(size, dtype=torch.uint8, device=device) for _ in range(2))
    tiny = torch.zeros(1, device=device)
    numbers = source.view(torch.float32)
    copied_per_s = 2 * size / shortest_s(clock, lambda: target.copy_(source))
    read_per_s = size / shortest_s(clock, numbers.sum)
    return Peaks(
        bytes_per_s=max(copied_per_s, read_per_s),
        flops_per_s=_cpu_rates(clock, precision) if on_cpu else _cuda_rates(device, clock),
        overhead_us=1e6 * shortest_s(clock, lambda: tiny.add_(1.0)),
    )


def _cuda_rates(device: str, clock: Clock) -> dict[Precision, float]:
    return {p: _matmul_rate(device, clock, p, (n, n, n)) for p, n in _CUDA_SIZES.items()}


def _cpu_rates(clock: Clock, precision: Precision) -> dict[Precision, float]:
    """Return the best rates of a CPU: how fast a product is depends on library and shape.

    A class that is looser than the one asked for matters where emulation by it is fast.
    """
    classes: list[Precision] = ["fp32"]
    if "half" in up_to(precision) or has_bf16_products():
        classes.append("half")
    return {p: max(_matmul_rate("cpu", clock, p, each) for each in CPU_SHAPES) for p in classes}


def _matmul_rate(
    device: str, clock: Clock, precision: Precision, shape: tuple[int, int, int]
) -> float:
    """Return the rate of the faster of a plain product and, on a CPU, one with packed weights."""
    rows, columns, inner = shape
    dtype = torch.bfloat16 if precision == "half" else torch.float32
    a = torch.randn(rows, inner, device=device).to(dtype)
    b = torch.randn(columns, inner, device=device).to(dtype)
    calls: list[Callable[[], object]] = [lambda: a @ b.T]
    if device == "cpu" and (packed := packed_product(a, b)):
        calls.append(packed)
    with baseline_scope(precision, device, autocast=False):
        seconds = min(shortest_s(clock, call) for call in calls)
    return 2 * rows * columns * inner / seconds


def shortest_s(clock: Clock, call: Callable[[], object]) -> float:
    """Return the seconds of the shortest of some calls."""
    clock.warm(lambda _: call())
    return min(clock.block(lambda _: call(), _REPEATS, lambda _, __: None)) / 1e6


def _dependence(instance: Instance, inputs: Inputs, wanted: Sequence[bool]) -> list[_Reach] | None:
    """Return how much of each input and parameter the wanted outputs depend on.

    By a derivative in a random direction. None where the reference has none, or no room for it.
    """

    def to_leaf(t: Tensor) -> Tensor:
        return t.detach().requires_grad_(t.is_floating_point())

    given = map_tensors(to_leaf, inputs)
    leaves = [*tensors_of(given), *instance.model.parameters()]
    differentiable = [t for t in leaves if t.requires_grad]
    try:
        with torch.enable_grad():
            outputs = flatten_outputs(instance.model(*given.args, **given.kwargs))
            ends = [
                t for (_, t), want in zip(outputs, wanted, strict=True) if want and t.requires_grad
            ]
            if not ends or not differentiable:
                return None
            along = [torch.randn_like(t) for t in ends]
            slopes = torch.autograd.grad(ends, differentiable, along, allow_unused=True)
    except (RuntimeError, TypeError, ValueError, AssertionError):
        return None
    found = iter(slopes)
    return [_reach(next(found)) if t.requires_grad else _ALL for t in leaves]


def _reach(slope: Tensor | None) -> _Reach:
    if slope is None:
        return _Reach(0.0, 0.0)
    matters = slope != 0
    share = float(matters.double().mean())
    if share < _PARTLY:
        return _Reach(share, share)
    if matters.dim() < 2 or matters[0].numel() < _LONG:
        return _Reach(share, 1.0)
    return _Reach(share, float(matters.flatten(1).any(1).double().mean()))


def _are_first(results: Sequence[Tensor]) -> list[bool]:
    """Return False for a tensor that came before: the gradient of both terms of a sum is one."""
    places = [(t.data_ptr(), t.shape, t.stride()) for t in results]
    return [place not in places[:i] for i, place in enumerate(places)]


def _is_copied(out: Tensor, sources: Sequence[Tensor]) -> bool:
    """Return True if an output's elements all come from one source: a view could be as good."""
    if not out.numel():
        return True
    flat = computable(out.detach().flatten())
    sample = flat[:: max(flat.numel() // _SAMPLE, 1)].sort().values
    again = sample == sample.roll(1)
    again[0] = False
    for source in sources:
        if source.dtype != sample.dtype or source.numel() == 0 or source.is_complex():
            continue
        values = computable(source.detach().flatten())
        places = torch.searchsorted(sample, values, out_int32=True).clamp_(max=len(sample) - 1)
        present = torch.zeros_like(sample, dtype=torch.bool)
        present[places[sample[places] == values]] = True  # of equal ones, the first
        if bool((present | again).all()):
            return True
    return False


def _written_bytes(out: Tensor) -> int:
    """Memory for an output's elements, one for all along an axis where they are the same."""
    distinct = out.element_size()
    for axis, size in enumerate(out.shape):
        same = bool((out == out.narrow(axis, 0, 1)).all()) if size > 1 else True
        distinct *= 1 if same else size
    return distinct


def _packed_bytes(weight: Tensor, precision: Precision) -> int:
    if not weight.is_floating_point():
        return bytes_of(weight)
    return bytes_of(weight) * min(PACKED_BYTES[precision], weight.itemsize) // weight.itemsize
