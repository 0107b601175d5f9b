"""Gluon: Triton's language with explicit layouts, shared memory, barriers, TMA and wgmma."""

from __future__ import annotations

from adaexplore.languages.base import Dialect
from adaexplore.languages.gluon.techniques import TECHNIQUES
from adaexplore.languages.triton import own_kernels

DIALECT = Dialect(
    name="gluon",
    title="Gluon",
    kernels="Gluon kernels (triton.experimental.gluon)",
    on_gpu=True,
    offline=True,
    imports=("triton",),
    own_kernels=own_kernels,
    preload=("triton.experimental.gluon.language.nvidia.hopper",),
    strategies={
        "tiling": "Tiles of products lie in shared memory under an `NVMMASharedLayout`.",
        "persistent kernel": "Keep barriers and buffers over tiles; their phases go on.",
        "software pipelining": "A ring of buffers filled by TMA or `async_copy`, a barrier each; "
        "`warpgroup_mma(..., is_async=True)` overlaps with the loads of later tiles.",
        "warp specialisation": "`gl.warp_specialize`: one partition of a warp loads by TMA, the "
        "default one multiplies; barriers `full` and `empty` for each buffer.",
        "vectorized access": "A `BlockedLayout` with 16 bytes a thread along the fastest axis.",
        "layout change": "`gl.convert_layout` goes through shared memory: choose layouts so that "
        "loops need none.",
        "precision emulation": "Split fp32 into two fp16 or TF32 parts yourself, for three "
        "`warpgroup_mma`.",
        "tuned configurations": "Block sizes, buffers and `num_warps` as constexpr arguments; "
        "`@triton.autotune` above `@gluon.jit` on four to eight configurations.",
    },
    since={"warp specialisation": 9},
    techniques=TECHNIQUES,
    formats={"flashinfer": ("triton",), "sol-execbench": ("triton", "pytorch")},
)
