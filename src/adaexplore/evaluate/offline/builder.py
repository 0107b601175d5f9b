"""Corrections of the interpreter's arithmetic where it differs from a GPU's.

`Builder` overrides methods of Triton's builder: bfloat16 is computed in float32 and rounded (Triton
3.9 computes on its bit patterns), comparisons return booleans, products of fp32 round their
operands to TF32 where a GPU does, libdevice's functions exist, and loads and stores go through a
`Memory`.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime.interpreter import (
    InterpreterBuilder,
    ReduceOps,
    ScanOps,
    TensorHandle,
    _get_np_dtype,
)

from adaexplore.evaluate.kernels.capture import CapturedLaunch
from adaexplore.evaluate.kernels.targets import NeedsGpuError
from adaexplore.evaluate.offline import libdevice
from adaexplore.evaluate.offline.memory import Array, Memory

_BITWISE = frozenset({np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift})


class SlowInterpretationError(TimeoutError):
    """A launch that the interpreter cannot finish within its time limit."""


class Builder(InterpreterBuilder):  # type: ignore[misc]  # Triton has no types
    """The operations of interpreted kernels.

    `flops` counts the FLOPs of a launch by kind: products in "fp32", "tf32", "half" or "int"; all
    other floating-point arithmetic counts as "fp32".
    """

    def __init__(self, options: Any) -> None:
        super().__init__()
        self.options = options
        self.flops: Counter[str] = Counter()
        self._memory: Memory
        self._deadline: float
        self._name = ""

    def begin(self, launch: CapturedLaunch, memory: Memory, deadline: float) -> None:
        """Prepare for a launch."""
        self.set_grid_dim(*launch.grid)
        self._memory = memory
        self._deadline = deadline
        self._name = launch.kernel.name
        self.flops.clear()

    # memory

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *_: Any, **__: Any) -> Any:
        """Load through the memory; lanes without a value get 0, as on NVIDIA GPUs."""
        self._look_at_the_clock()
        element = ptrs.get_element_ty()
        dtype = _get_np_dtype(element)
        default = np.zeros(ptrs.data.shape, dtype) if other is None else other.data
        return TensorHandle(self._memory.load(ptrs.data, mask.data, default, dtype), element)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, *_: Any, **__: Any) -> None:
        """Store through the memory."""
        self._memory.store(ptrs.data, value.data, mask.data)

    def create_atomic_rmw(
        self,
        operation: Any,
        ptr: Any,
        val: Any,
        mask: Any,
        order: Any,
        scope: Any,  # noqa: ARG002
    ) -> Any:
        """Run an atomic operation through the memory; NumPy lacks bfloat16, so it is added here."""
        self._look_at_the_clock()
        if _is_bf16(val) and operation == ir.ATOMIC_OP.FADD:
            return self._add_bf16(ptr, val, mask)
        old = self._memory.atomic_rmw(
            self.ir_rmw_op_to_interpreter_rmw_op[operation],
            ptr.data,
            val.data,
            mask.data,
            self.ir_sem_to_interpreter_sem[order],
        )
        return TensorHandle(old, val.dtype.scalar)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, order: Any, scope: Any) -> Any:  # noqa: ARG002
        """Compare and swap through the memory."""
        self._look_at_the_clock()
        order = self.ir_sem_to_interpreter_sem[order]
        return TensorHandle(
            self._memory.atomic_cas(ptr.data, cmp.data, val.data, order), cmp.dtype.scalar
        )

    def _look_at_the_clock(self) -> None:
        """End a loop that is too slow, or that waits for a program that cannot run meanwhile."""
        if time.monotonic() > self._deadline:
            raise SlowInterpretationError(
                f"{self._name}: a program of it takes more than the time for a whole launch"
            )

    def _add_bf16(self, ptr: Any, val: Any, mask: Any) -> Any:
        old = np.zeros(ptr.data.shape, np.uint16)
        here, nothing = np.ones(1, bool), np.zeros(1, np.uint16)
        lanes = np.broadcast_to(mask.data, ptr.data.shape)
        for lane in zip(*np.nonzero(lanes), strict=True):  # one by one: lanes may meet
            at = ptr.data[lane].reshape(1)
            before = self._memory.load(at, here, nothing, np.dtype(np.uint16))
            self._memory.store(at, _narrow(_widen(before) + _widen(val.data[lane])), here)
            old[lane] = before[0]
        return TensorHandle(old, tl.bfloat16)

    # arithmetic

    def get_bf16(self, value: Any) -> Any:
        """Return a bfloat16 constant; Triton 3.6 has none."""
        return _rounded(self.get_fp32(value))

    def binary_op(self, lhs: Any, rhs: Any, op: Any) -> Any:
        """Apply a binary operation, also to bfloat16."""
        if _is_bf16(lhs) and _is_bf16(rhs) and op not in _BITWISE:
            return _rounded(self._counted(super().binary_op(_float(lhs), _float(rhs), op)))
        return self._counted(super().binary_op(lhs, rhs, op))

    def unary_op(self, arg: Any, op: Any) -> Any:
        """Apply a unary operation, also to bfloat16."""
        if _is_bf16(arg):
            return _rounded(self._counted(super().unary_op(_float(arg), op)))
        return self._counted(super().unary_op(arg, op))

    def ternary_op(self, lhs: Any, rhs: Any, other: Any, op: Any) -> Any:
        """Apply a ternary operation; a selection moves bits, of any dtype."""
        if _is_bf16(other) and op is not np.where:
            return _rounded(super().ternary_op(_float(lhs), _float(rhs), _float(other), op))
        return super().ternary_op(lhs, rhs, other, op)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        """Compute a multiply-add."""
        if _is_bf16(z):
            return _rounded(super().create_fma(_float(x), _float(y), _float(z)))
        return super().create_fma(x, y, z)

    def _counted(self, result: Any) -> Any:
        """Count the arithmetic behind a result; raises if the time is over."""
        self._look_at_the_clock()
        if result.dtype.scalar.is_floating():
            self.flops["fp32"] += result.data.size
        return result

    def create_rsqrt(self, arg: Any) -> Any:
        """Compute the reciprocal of a square root."""
        return self.unary_op(arg, lambda data: np.reciprocal(np.sqrt(data)))

    def create_dot(
        self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any
    ) -> Any:
        """Compute a product in the accumulator's dtype; fp32 as TF32 if the kernel requests it.

        A GPU's tensor cores cut off the last 13 bits of the operands, since Triton does not convert
        them before.
        """
        a, b = _float(a), _float(b)
        kind = "half" if a.dtype.scalar.primitive_bitwidth < 32 else "fp32"
        if a.dtype.scalar.is_int():
            kind = "int"
        elif a.dtype.scalar == tl.float32 and input_precision == ir.INPUT_PRECISION.TF32:
            kind = "tf32"
            a, b = (TensorHandle(_truncated(h.data), h.dtype) for h in (a, b))
        flops = 2 * a.data.size * b.data.shape[-1]
        if kind == "fp32" and input_precision == ir.INPUT_PRECISION.TF32x3:
            self.flops["tf32"] += 3 * flops
        else:
            self.flops[kind] += flops
        if a.data.dtype == np.float16:  # NumPy multiplies float16 slowly
            a, b = (TensorHandle(h.data.astype(np.float32), tl.float32) for h in (a, b))
        return super().create_dot(a, b, d, input_precision, max_num_imprecise_acc)

    # conversions

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        """Convert values; to bfloat16 by rounding to the nearest, ties to even."""
        if dst_type.scalar == tl.bfloat16 and not _is_bf16(src):
            return _rounded(TensorHandle(src.data.astype(np.float32), tl.float32))
        if _is_bf16(src) and dst_type.scalar != tl.bfloat16:
            src = _float(src)
            return src if dst_type.scalar == tl.float32 else super().cast_impl(src, dst_type)
        return super().cast_impl(src, dst_type)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        """Convert between floating-point types."""
        scalar = dst_type.scalar
        if {scalar, src.dtype.scalar} <= {tl.bfloat16, tl.float16, tl.float32, tl.float64}:
            return self.cast_impl(src, dst_type)
        return super().create_fp_to_fp(_float(src), dst_type, rounding_mode)

    # features of a GPU alone

    def create_extern_elementwise(
        self, _name: str, _path: str, symbol: str, args: list[Any], ret_type: Any, _pure: bool
    ) -> Any:
        """Call a function of libdevice."""
        function = libdevice.function(symbol)
        if function is None:
            raise NeedsGpuError(f"{symbol} of libdevice cannot be interpreted")
        scalar = ret_type.scalar
        result = function(*(handle.data for handle in args))
        return TensorHandle(np.asarray(result).astype(_get_np_dtype(scalar)), scalar)

    def create_inline_asm(self, text: str, *_: Any) -> Any:
        """Raise `NeedsGpuError`: assembly cannot be interpreted."""
        raise NeedsGpuError(f"inline assembly cannot be interpreted: {text.strip()[:60]}")


def _comparison(name: str) -> Any:
    original = getattr(InterpreterBuilder, name)

    def compare(self: Builder, lhs: Any, rhs: Any) -> Any:
        """Compare as booleans: Triton's comparison keeps the operands' type, also in a splat."""
        lhs, rhs = (_float(h) if _is_bf16(h) else h for h in (lhs, rhs))
        return TensorHandle(np.asarray(original(self, lhs, rhs).data, np.bool_), tl.int1)

    return compare


for _name in dir(InterpreterBuilder):
    if _name.startswith(("create_icmp", "create_fcmp")):
        setattr(Builder, _name, _comparison(_name))


class Reduce(ReduceOps):  # type: ignore[misc]
    """Reductions; bfloat16 is reduced in float32."""

    def apply_impl(self, input: Any) -> Any:
        """Reduce the tensors of a tuple together."""
        return _as_before(input, super().apply_impl(tuple(_float_tensor(t) for t in input)))


class Scan(ScanOps):  # type: ignore[misc]
    """Scans; bfloat16 is scanned in float32."""

    def apply_impl(self, input: Any) -> Any:
        """Scan the tensors of a tuple together."""
        return _as_before(input, super().apply_impl(tuple(_float_tensor(t) for t in input)))


def _float_tensor(tensor: Any) -> Any:
    return _with_handle(tensor, _float(tensor.handle)) if _is_bf16(tensor.handle) else tensor


def _as_before(given: Any, results: Any) -> Any:
    """Return the results in the types of the given tensors."""
    together = results if isinstance(results, tuple | list) else [results]
    return tuple(
        _with_handle(result, _rounded(result.handle)) if _is_bf16(before.handle) else result
        for before, result in zip(given, together, strict=True)
    )


def _with_handle(tensor: Any, handle: Any) -> Any:
    scalar = handle.dtype.scalar
    shaped = tl.block_type(scalar, tensor.type.shape) if tensor.type.is_block() else scalar
    return tl.core.tensor(handle, shaped)


def _is_bf16(handle: Any) -> bool:
    return bool(handle.dtype.scalar == tl.bfloat16) and handle.data.dtype == np.uint16


def _float(handle: Any) -> Any:
    """Convert a bfloat16 handle to float32; return any other handle unchanged."""
    return TensorHandle(_widen(handle.data), tl.float32) if _is_bf16(handle) else handle


def _rounded(handle: Any) -> Any:
    return TensorHandle(_narrow(handle.data), tl.bfloat16)


def _widen(bits: Array) -> Array:
    """Return the float32 values of bfloat16 bit patterns."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def _narrow(values: Array) -> Array:
    """Return the bit patterns of the nearest bfloat16 values, ties to even."""
    values = np.asarray(values, np.float32)
    bits = values.view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def _truncated(values: Array) -> Array:
    """Return float32 values without the bits that TF32 lacks."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
