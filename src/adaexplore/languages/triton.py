"""Triton."""

from __future__ import annotations

import ast

from adaexplore.languages.base import Dialect, decorated


def _own_kernels(tree: ast.Module) -> set[str]:
    """Return the functions under `@jit`, `@triton.jit`, `@triton.jit(...)`, `@gluon.jit`."""
    return decorated(tree, lambda name: name.rpartition(".")[2] == "jit")


TRITON = Dialect(
    name="triton",
    title="Triton",
    kernels="Triton kernels",
    on_gpu=True,
    offline=True,
    imports=("triton",),
    own_kernels=_own_kernels,
    by_compiler=True,
)
