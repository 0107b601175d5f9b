"""The products of a reference: the longest chain of them, and the library's time for them.

A chain is found as the reference runs: an operator's results are as deep in it as the deepest of
its operands. Whole operands count, so a chain through one row of a tensor is one through all. Pins
`UntypedStorage._cdata`, by which two tensors are known to share memory, and the schema of
`aten::_cudnn_rnn`, the operator of a whole RNN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from adaexplore.core.problem import Precision
from adaexplore.core.protocols.clock import Clock
from adaexplore.core.verdict.facts import ReferenceProducts
from adaexplore.evaluate.timing.clock import clock_for
from adaexplore.evaluate.timing.operations import flop_formulas, runs_under
from adaexplore.evaluate.timing.roofline import shortest_s
from adaexplore.evaluate.truth.precision import baseline_scope
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Inputs

_aten = torch.ops.aten

_TIMED_KINDS = 4
_LIBRARY: Mapping[Precision, torch.dtype] = {"half": torch.float16, "tf32": torch.float32}
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
_GRAPH_KERNELS = 64
_OVERWRITES = (_aten.copy_, _aten.fill_, _aten.zero_)
"""Operators that read nothing of the tensor that they write."""


@dataclass(frozen=True, slots=True)
class TensorForm:
    """The form of an operand."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype


@dataclass(slots=True)
class Product:
    """Calls of one operator on operands of one form, which stand in `args` and `kwargs`.

    `flops` are those of one of the `calls`.
    """

    operator: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    flops: int
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """The products of a call, and the length of the longest chain of them."""

    products: tuple[Product, ...]
    depth: int


def trace(instance: Instance, inputs: Inputs) -> Trace | None:
    """Return the products of a call of the reference; None where it does not bear tracing."""
    tracer = _Tracer()
    if not runs_under(tracer, instance, inputs):
        return None
    return Trace(tuple(tracer.products.values()), tracer.depth)


def measure_products(traced: Trace, device: str, clock: Clock | None = None) -> ReferenceProducts:
    """Time the library on a reference's products, and a launch of a CUDA graph.

    The four kinds with the most operations count, as often as the reference calls them; a
    convolution as fast as it is in the reference's layout or channels-last. The caller holds the
    device. What cannot be timed is left out.
    """
    clock = clock or clock_for(device)
    flops = sum(each.flops * each.calls for each in traced.products)
    kinds = [each for each in traced.products if "attention" not in str(each.operator)]
    kinds.sort(key=lambda each: each.flops * each.calls, reverse=True)
    kinds = kinds[:_TIMED_KINDS]
    library_us: dict[Precision, float] = {}
    step_us = 0.0
    with suppress(RuntimeError, TypeError, ValueError):  # no memory, or no such product in fp16
        for precision, dtype in _LIBRARY.items() if kinds else ():
            with baseline_scope(precision, device, autocast=False):
                seconds = (each.calls * _library_s(each, dtype, device, clock) for each in kinds)
                library_us[precision] = 1e6 * sum(seconds)
    with suppress(RuntimeError):
        step_us = _step_us(device, clock)
    return ReferenceProducts(
        flops=flops,
        depth=traced.depth,
        step_us=step_us,
        timed=sum(each.calls for each in kinds) if library_us else 0,
        timed_flops=sum(each.flops * each.calls for each in kinds) if library_us else 0,
        library_us=library_us,
    )


def _library_s(product: Product, dtype: torch.dtype, device: str, clock: Clock) -> float:
    def seconds(channels_last: bool) -> float:
        def made(form: TensorForm) -> Tensor:
            return _random(form, dtype, device, channels_last=channels_last)

        args, kwargs = tree_map_only(TensorForm, made, (product.args, product.kwargs))
        return shortest_s(clock, lambda: product.operator(*args, **kwargs))

    layouts = (False, True) if "convolution" in str(product.operator) else (False,)
    return min(map(seconds, layouts))


def _random(form: TensorForm, dtype: torch.dtype, device: str, *, channels_last: bool) -> Tensor:
    """Return random numbers in a form, floating-point ones in another dtype."""
    dtype = dtype if form.dtype.is_floating_point else form.dtype
    if channels_last and (layout := _CHANNELS_LAST.get(len(form.shape))):
        return torch.empty(form.shape, dtype=dtype, device=device, memory_format=layout).normal_()
    distinct = [n if stride else 1 for n, stride in zip(form.shape, form.strides, strict=True)]
    made = torch.empty_strided(distinct, form.strides, dtype=dtype, device=device)
    return made.normal_().expand(form.shape)


def _step_us(device: str, clock: Clock) -> float:
    """Return the time that a CUDA graph takes for each of a chain of small kernels."""
    tiny = torch.zeros(1, device=device).add_(1.0)  # its kernel is loaded before the capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(device), torch.cuda.graph(graph):
        for _ in range(_GRAPH_KERNELS):
            tiny.add_(1.0)
    return 1e6 * shortest_s(clock, graph.replay) / _GRAPH_KERNELS


class _Tracer(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The products that reach the dispatcher while the mode is entered, and their chain."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: dict[str, Product] = {}
        self.depth = 0
        self._formulas = flop_formulas()
        self._depths = _Depths()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the operation and record it."""
        kwargs = dict(kwargs or {})
        names = [each.name for each in func._schema.arguments]
        given = dict(zip(names, args, strict=False)) | kwargs
        before = max(map(self._depths.of, _read(func, given)), default=0)
        out = func(*args, **kwargs)
        depth = before + self._steps(func, given) + self._product(func, args, kwargs, out)
        self.depth = max(self.depth, depth)
        for tensor in _made(func, out):
            self._depths.make(tensor, depth)
        for tensor in _written(func, given):
            self._depths.write(tensor, depth)
        return out

    def _product(self, func: Any, args: Any, kwargs: Any, out: Any) -> int:
        """Record a product; return 1 if it is one."""
        formula = self._formulas.get(func._overloadpacket)
        flops = int(formula(*args, **kwargs, out_val=out)) if formula else 0
        if not flops:
            return 0
        forms, options = tree_map(_form, (args, kwargs))
        product = Product(func, forms, options, flops)
        self.products.setdefault(f"{func}{forms}{options}", product).calls += 1
        return 1

    @staticmethod
    def _steps(func: Any, given: Mapping[str, Any]) -> int:
        """Return the length of the chain in an RNN's operator.

        A layer may take a step as soon as the layer before it has: a diagonal at a time. In both
        directions it needs the last step of the layer before.
        """
        if func._overloadpacket is not _aten._cudnn_rnn:
            return 0
        axis = 1 if given["batch_first"] else 0
        steps = len(given["batch_sizes"]) or given["input"].shape[axis]
        layers = given["num_layers"]
        return int(steps * layers if given["bidirectional"] else steps + layers - 1)


class _Depths:
    """The depths of tensors in chains, by memory: views of one tensor share it."""

    def __init__(self) -> None:
        self._memory: dict[int, dict[_Layout, dict[int, int]]] = {}
        """Of each storage the depths that were written, by layout and offset of the view."""

    def of(self, tensor: Tensor) -> int:
        """Return the largest depth that was written to memory of the tensor.

        Views of one layout at two offsets are taken to be apart, as the columns of a matrix.
        """
        own = _layout(tensor)
        depths = [
            views.get(int(tensor.storage_offset()), 0) if layout == own else max(views.values())
            for layout, views in self._memory.get(_storage(tensor), {}).items()
        ]
        return max(depths, default=0)

    def make(self, tensor: Tensor, depth: int) -> None:
        """Record a tensor with memory of its own."""
        self._memory[_storage(tensor)] = {_layout(tensor): {int(tensor.storage_offset()): depth}}

    def write(self, tensor: Tensor, depth: int) -> None:
        """Record what was written to a tensor or a view."""
        if tensor.numel() * tensor.itemsize == tensor.untyped_storage().nbytes():
            self.make(tensor, depth)  # nothing of before is left
            return
        views = self._memory.setdefault(_storage(tensor), {}).setdefault(_layout(tensor), {})
        views[int(tensor.storage_offset())] = depth


_Layout = tuple[torch.Size, tuple[int, ...]]


def _layout(tensor: Tensor) -> _Layout:
    return tensor.shape, tensor.stride()


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _form(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return TensorForm(tuple(value.shape), value.stride(), value.dtype)


def _tensors(tree: Any) -> Iterator[Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor))


def _read(func: Any, given: Mapping[str, Any]) -> Iterator[Tensor]:
    """Yield the tensors that an operator reads: not those that it only writes."""
    only_written = {a.name for a in func._schema.arguments if a.is_out}
    if func._overloadpacket in _OVERWRITES:
        only_written.add("self")
    return _tensors([value for name, value in given.items() if name not in only_written])


def _made(func: Any, out: Any) -> Iterator[Tensor]:
    """Yield the results that are no arguments and no views of them."""
    returns = func._schema.returns
    results = out if len(returns) > 1 else (out,)
    for form, result in zip(returns, results, strict=True) if returns else ():
        if form.alias_info is None:
            yield from _tensors(result)


def _written(func: Any, given: Mapping[str, Any]) -> Iterator[Tensor]:
    changed = [a.name for a in func._schema.arguments if a.alias_info and a.alias_info.is_write]
    return _tensors([given[name] for name in changed if name in given])
