"""CUDA's libdevice in NumPy: the functions that kernels call through `triton.language.extra`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Function = Callable[..., Any]


def _each(function: Callable[[float], float]) -> Function:
    """Apply a function of the standard library to every element."""
    return np.vectorize(function, otypes=[np.float64])


_FUNCTIONS: dict[str, Function] = {
    "abs": np.abs,
    "fabs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "add": np.add,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "cospi": lambda x: np.cos(np.pi * x),
    "div": np.divide,
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x),
    "exp2": np.exp2,
    "expm1": np.expm1,
    "fdim": lambda x, y: np.maximum(x - y, 0),
    "fdivide": np.divide,
    "finite": np.isfinite,
    "float2int_rz": np.trunc,
    "floor": np.floor,
    "fma": lambda x, y, z: x * y + z,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "ldexp": np.ldexp,
    "llrint": np.rint,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "mul": np.multiply,
    "nearbyint": np.rint,
    "normcdf": _each(lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0))),
    "pow": np.power,
    "powi": np.power,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rcp": np.reciprocal,
    "rint": np.rint,
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "saturate": lambda x: np.clip(np.nan_to_num(x), 0, 1),
    "signbit": np.signbit,
    "sin": np.sin,
    "sinh": np.sinh,
    "sinpi": lambda x: np.sin(np.pi * x),
    "sqrt": np.sqrt,
    "sub": np.subtract,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}


def function(symbol: str) -> Function | None:
    """Return the function of a symbol such as `__nv_tanhf`; None if it is not implemented here.

    `__nv_fast_expf` is as exact as `__nv_expf`; rounding to nearest is the only rounding mode.
    """
    found = (_FUNCTIONS.get(name) for name in _names(symbol))
    return next((f for f in found if f is not None), None)


def _names(symbol: str) -> Iterator[str]:
    """Yield the names of a symbol without its prefixes and the letter of its type."""
    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    yield name
    if name.endswith("_rn"):
        yield name.removesuffix("_rn")[1:]  # fadd_rn, dadd_rn
        yield name.removesuffix("_rn")  # fma_rn
    yield name.removesuffix("f")
    yield name.removesuffix("d")  # isnand
