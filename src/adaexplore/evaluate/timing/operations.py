"""The operations of a reference's products, and the fastest products of a CPU's libraries.

A plain product on a CPU packs its weights in every call, and MKL is slow on other makers'
processors; oneDNN takes weights that were packed before. What a better library product explains is
no algebra. Pins `torch.ops.mkldnn`: `_reorder_linear_weight`, `_linear_pointwise` and
`_is_mkldnn_bf16_supported`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Inputs

_aten = torch.ops.aten

CPU_SHAPES = ((512, 512, 512), (256, 1024, 1024), (128, 4096, 1024))
"""Rows, columns and inner size of the products that are tried; none is best everywhere."""


def operations_of(instance: Instance, inputs: Inputs) -> int | None:
    """Return the floating-point operations of a call of the reference.

    None where the call does not bear counting: a formula that does not know the shapes, or a module
    that does not run under a dispatch mode, is no reason to do without the problem.
    """
    counter = _counter()
    return int(counter.get_total_flops()) if runs_under(counter, instance, inputs) else None


def runs_under(mode: AbstractContextManager[Any], instance: Instance, inputs: Inputs) -> bool:
    """Call the reference under a dispatch mode; return False where that raises an exception."""
    try:
        with torch.no_grad(), mode:
            instance.model(*inputs.args, **inputs.kwargs)
    except Exception:  # noqa: BLE001 - the user's code and PyTorch's formulas, under a mode
        return False
    return True


def flop_formulas() -> Mapping[Any, Callable[..., int]]:
    """Return the formulas of matrix products, convolutions and attention, by operator.

    They take an operator's arguments, and its result as `out_val`.
    """
    return _counter().flop_registry


def _counter() -> FlopCounterMode:
    return FlopCounterMode(display=False, custom_mapping=_ATTENTION)


def _attention(
    causal: int,
    query: Sequence[int],
    key: Sequence[int],
    value: Sequence[int],
    *others: Any,
    **options: Any,
) -> int:
    """Count both products of an attention; query heads may share the heads of keys and values.

    A causal one needs the scores on one side of the diagonal alone. `causal` is the place of
    `is_causal` behind the three tensors.
    """
    *batch, queries, width = query
    keys, value_width = key[-2], value[-1]
    pairs = queries * keys
    if others[causal] if len(others) > causal else options.get("is_causal"):
        pairs = sum(min(row + 1, keys) for row in range(queries))
    return 2 * torch.Size(batch).numel() * pairs * (width + value_width)


_ATTENTION: dict[Any, Callable[..., int]] = {
    _aten._scaled_dot_product_flash_attention: partial(_attention, 1),
    _aten._scaled_dot_product_flash_attention_for_cpu: partial(_attention, 1),
    _aten._scaled_dot_product_fused_attention_overrideable: partial(_attention, 2),
    _aten._scaled_dot_product_efficient_attention: partial(_attention, 3),
    _aten._scaled_dot_product_cudnn_attention: partial(_attention, 3),
}
"""PyTorch's own formulas know no shared heads before 2.13, and nothing of causal masks or CPUs."""


def packed_product(a: Tensor, weight: Tensor) -> Callable[[], Tensor] | None:
    """Return `a @ weight.T` with the weight packed already; None where oneDNN cannot do that."""
    if not (has_bf16_products() if weight.dtype is torch.bfloat16 else _has_onednn()):
        return None
    ops = torch.ops.mkldnn
    with torch.no_grad():
        packed = ops._reorder_linear_weight(weight, len(a))

    def call() -> Tensor:
        product: Tensor = ops._linear_pointwise(a, packed, None, "none", [], "")
        return product

    return call


def has_bf16_products() -> bool:
    """Return whether the CPU has instructions for products in bf16."""
    return _has_onednn() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _has_onednn() -> bool:
    return bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
