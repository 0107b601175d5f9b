"""Helion: PyTorch with tiles, compiled to Triton kernels."""

from __future__ import annotations

import ast

from adaexplore.languages.base import Dialect, decorated

_DECORATORS = frozenset({"helion.kernel", "helion.jit", "kernel"})


def _own_kernels(tree: ast.Module) -> set[str]:
    """Return the names of the Triton kernels: the functions' names with Helion's prefix."""
    return {f"_helion_{name}" for name in decorated(tree, _DECORATORS.__contains__)}


DIALECT = Dialect(
    name="helion",
    title="Helion",
    kernels="Helion kernels, each with its configuration",
    on_gpu=True,
    offline=True,
    interpreted=True,
    imports=("helion",),
    generator="helion",
    own_kernels=_own_kernels,
    preload=("adaexplore.languages.helion.host:load",),
    environment={
        # The autotuner takes minutes; a given list of configurations is short.
        "HELION_DISALLOW_AUTOTUNING": "1",
        "HELION_AUTOTUNE_BENCHMARK_SUBPROCESS": "0",
        "HELION_AUTOTUNE_ACCURACY_CHECK": "0",
        "HELION_AUTOTUNE_PROGRESS_BAR": "0",
    },
    lacking="adaexplore.languages.helion.host:lacking",
    trial="adaexplore.languages.helion.host:try_generating",
    strategies={
        "persistent kernel": '`pid_type="persistent_blocked"` or `"persistent_interleaved"`.',
        "software pipelining": "`range_num_stages` or `num_stages` 3 to 5 on loops with products.",
        "warp specialisation": "`range_warp_specializes=[None, True]`.",
        "vectorized access": "Larger blocks of the innermost dimension.",
        "precision emulation": '`dot_precision="tf32x3"` splits into TF32; split into fp16 '
        "yourself.",
        "tuned configurations": "`configs=[...]` of four to eight in place of `config`.",
    },
    since={"warp specialisation": 10},
    formats={"sol-execbench": ("triton", "pytorch")},
)
