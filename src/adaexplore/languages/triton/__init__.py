"""Triton."""

from __future__ import annotations

import ast

from adaexplore.languages.base import Dialect, decorated
from adaexplore.languages.triton.techniques import TECHNIQUES


def own_kernels(tree: ast.Module) -> set[str]:
    """Return the functions under `@jit`, `@triton.jit`, `@triton.jit(...)`, `@gluon.jit`."""
    return decorated(tree, lambda name: name.rpartition(".")[2] == "jit")


DIALECT = Dialect(
    name="triton",
    title="Triton",
    kernels="Triton kernels",
    on_gpu=True,
    offline=True,
    interpreted=True,
    imports=("triton",),
    own_kernels=own_kernels,
    by_compiler=True,
    well_known=True,
    strategies={
        "persistent kernel": "A barrier over the grid of a cooperative launch: store, "
        "`tl.debug_barrier()`, `tl.atomic_add(seen_ptr, 1)`, then `while tl.atomic_add(seen_ptr, "
        "0) < barriers * tl.num_programs(0): pass`, with a counter that is zero at the launch; "
        'load what others stored with `cache_modifier=".cg"`.',
        "software pipelining": "`num_stages` 3 to 5 on loops with `tl.dot`.",
        "warp specialisation": "`tl.range(..., warp_specialize=True)`.",
        "vectorized access": "Larger contiguous blocks with aligned strides.",
        "precision emulation": '`input_precision="tf32x3"` splits into TF32; split into fp16 '
        "yourself, with `total += tl.dot(...)` of a new accumulator in each step.",
        "tuned configurations": "`@triton.autotune` on four to eight configurations, keyed by the "
        "sizes.",
    },
    since={"warp specialisation": 10},
    techniques=TECHNIQUES,
    formats={"flashinfer": ("triton",), "sol-execbench": ("triton", "pytorch")},
)
