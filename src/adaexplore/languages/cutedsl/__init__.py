"""CuTe DSL: CUTLASS's layouts, copies and products in Python, compiled by NVIDIA's own compiler."""

from __future__ import annotations

import ast

from adaexplore.languages.base import Dialect, decorated

_DECORATORS = frozenset({"cute.kernel", "kernel"})


def _own_kernels(tree: ast.Module) -> set[str]:
    """Return how the kernels' names begin; the compiler appends the types of their arguments."""
    return {f"kernel_cutlass_{name}_*" for name in decorated(tree, _DECORATORS.__contains__)}


DIALECT = Dialect(
    name="cutedsl",
    title="CuTe DSL",
    kernels="CuTe DSL kernels (cutlass.cute), compiled in the constructor",
    on_gpu=True,
    offline=True,
    imports=("cutlass",),
    generator="cutlass",
    own_kernels=_own_kernels,
    preload=("adaexplore.languages.cutedsl.host:load",),
    environment={"CUTE_DSL_DISABLE_FILE_CACHING": "1"},
    lacking="adaexplore.languages.cutedsl.host:lacking",
    trial="adaexplore.languages.cutedsl.host:try_compiling",
    capture="adaexplore.languages.cutedsl.capture:capture",
    strategies={
        "tiling": "`cute.zipped_divide` or `cute.local_tile` gives a block its tile; "
        "`cute.make_tiled_copy_tv` spreads it over the threads.",
        "persistent kernel": "A `while` over tiles that steps by `cute.arch.grid_dim()`; "
        "`cutlass.utils.StaticPersistentTileScheduler` orders them.",
        "software pipelining": "`cute.nvgpu.cpasync` copies or TMA into a ring of stages; "
        "`cutlass.pipeline.PipelineTmaAsync` keeps its barriers.",
        "warp specialisation": "Warps branch on `cute.arch.warp_idx()`: one loads by TMA, the "
        "others multiply; `cute.arch.setmaxregister_decrease` and `_increase` give them more "
        "registers.",
        "vectorized access": "A layout of values with 16 bytes a thread along the fastest axis; "
        "`assumed_align=16`.",
        "tuned configurations": "Tile sizes as `cutlass.Constexpr` arguments of `cute.compile`.",
    },
    since={"warp specialisation": 9},
    formats={"sol-execbench": ("cute_dsl", "pytorch")},
)
