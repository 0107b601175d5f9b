"""CUDA's autocast for tensors on other devices: the dtypes that operations compute in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_map


def _all_forms(*names: str) -> frozenset[Any]:
    """Return the functions of these names in `torch`, `torch.Tensor` and `torch.nn.functional`."""
    owners = (torch, torch.Tensor, F)
    found = {getattr(owner, name, None) for owner in owners for name in names}
    return frozenset(found - {None})


_LOW = _all_forms(
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    *("linear", "matmul", "__matmul__", "__rmatmul__", "mm", "mv", "bmm", "addmm", "addmv"),
    *("addbmm", "baddbmm", "chain_matmul", "einsum", "prelu", "scaled_dot_product_attention"),
)
_HIGH = _all_forms(
    *("acos", "asin", "cosh", "sinh", "tan", "exp", "expm1", "log", "log10", "log1p", "log2"),
    *("reciprocal", "rsqrt", "pow", "__pow__", "__rpow__", "prod", "sum", "cumprod", "cumsum"),
    *("erfinv", "norm", "cdist", "dist", "renorm", "logsumexp"),
    *("softmax", "log_softmax", "softplus", "softmin", "gelu", "layer_norm", "group_norm"),
    *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "nll_loss", "cross_entropy"),
    *("kl_div", "cosine_similarity", "cosine_embedding_loss", "triplet_margin_loss"),
)
"""Operations in half precision and in fp32, from PyTorch's page on automatic mixed precision."""

_HALVES = (torch.float16, torch.bfloat16)


class Autocast:
    """The stack of dtypes of CUDA's autocast; None stands for autocast that is off."""

    def __init__(self) -> None:
        self.dtypes: list[torch.dtype | None] = [None]

    def call(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call a function of PyTorch with its arguments cast as autocast casts them."""
        dtype = self.dtypes[-1]
        if dtype is not None and func in _LOW:
            args, kwargs = tree_map(_cast((torch.float32, *_HALVES), dtype), (args, kwargs))
        elif dtype is not None and func in _HIGH:
            args, kwargs = tree_map(_cast(_HALVES, torch.float32), (args, kwargs))
        return func(*args, **kwargs)


def _cast(sources: tuple[torch.dtype, ...], to: torch.dtype) -> Callable[[Any], Any]:
    def cast(value: Any) -> Any:
        suits = isinstance(value, torch.Tensor) and value.dtype in sources
        return value.to(to) if suits else value

    return cast


class CudaAutocast:
    """`torch.autocast("cuda", ...)`, as a context or a decorator."""

    def __init__(
        self,
        state: Autocast,
        dtype: torch.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,  # noqa: ARG002 - has no effect on results
    ) -> None:
        self._state = state
        self._dtype = (dtype or torch.float16) if enabled else None

    def __enter__(self) -> CudaAutocast:
        self._state.dtypes.append(self._dtype)
        return self

    def __exit__(self, *_: object) -> None:
        self._state.dtypes.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function wrapped to run under autocast."""

        def under_autocast(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return under_autocast
