"""Helion: PyTorch with tiles, compiled to Triton kernels."""

from __future__ import annotations

import ast

from adaexplore.languages.base import Dialect, decorated

_DECORATORS = frozenset({"helion.kernel", "helion.jit", "kernel"})


def _own_kernels(tree: ast.Module) -> set[str]:
    """Return the names of the Triton kernels: the functions' names with Helion's prefix."""
    return {f"_helion_{name}" for name in decorated(tree, _DECORATORS.__contains__)}


HELION = Dialect(
    name="helion",
    title="Helion",
    kernels="Helion kernels, each with its configuration",
    on_gpu=True,
    offline=True,
    imports=("helion",),
    generator="helion",
    own_kernels=_own_kernels,
    preload=("adaexplore.evaluate.kernels.build.helion_host:load",),
    environment={
        # The autotuner takes minutes; a given list of configurations is short.
        "HELION_DISALLOW_AUTOTUNING": "1",
        "HELION_AUTOTUNE_BENCHMARK_SUBPROCESS": "0",
        "HELION_AUTOTUNE_ACCURACY_CHECK": "0",
        "HELION_AUTOTUNE_PROGRESS_BAR": "0",
    },
    lacking="adaexplore.evaluate.kernels.build.helion_host:lacking",
    trial="adaexplore.evaluate.kernels.build.helion_host:try_generating",
)
