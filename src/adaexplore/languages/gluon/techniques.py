"""Techniques of Gluon: what makes it faster than Triton, and what a model knows least."""

from __future__ import annotations

from adaexplore.languages.base import Technique

_PRODUCT = frozenset({"tl.dot"})
_REDUCTION = frozenset({"tl.sum", "tl.max", "tl.min", "tl.reduce"})
_SCAN = frozenset({"tl.associative_scan"})

TECHNIQUES: tuple[Technique, ...] = (
    Technique(
        "tma tiles",
        "copy every tile of the inputs and of the output by TMA (`tma`), through tensor "
        "descriptors made on the host",
    ),
    Technique(
        "asynchronous wgmma",
        "multiply by asynchronous `warpgroup_mma`, with one product still in flight while the next "
        "operands are waited for",
        _PRODUCT,
    ),
    Technique(
        "tuple reduction",
        "reduce several values at once by one reduction over a tuple with a combine function of "
        "your own, in layouts that you choose",
        _REDUCTION,
    ),
    Technique(
        "specialized loader",
        "use warp specialization (`gl.warp_specialize`): one warp loads tiles by TMA, the others "
        "compute, and both wait for each other by barriers (`mbarrier`) of a ring of buffers",
    ),
    Technique(
        "swizzled exchange",
        "exchange data between threads through shared memory with a swizzled layout, stored in one "
        "distributed layout and loaded in another",
    ),
    Technique(
        "copy groups",
        "pipeline the loads by asynchronous copies into a ring of buffers in shared memory "
        "(`async_copy`, without TMA), committed and waited for in groups",
    ),
    Technique(
        "barriers of threads",
        "have the warps of a program hand over buffers by barriers (`mbarrier`) on which the "
        "threads arrive and wait themselves, with phases that flip from one round to the next",
    ),
    Technique(
        "left operand in registers",
        "multiply by `warpgroup_mma` whose left operand comes from registers, computed or "
        "converted there, in the layout that it needs",
        _PRODUCT,
    ),
    Technique(
        "across warps",
        "reduce in three stages: in each thread, across the threads of a warp, and across warps "
        "through shared memory that you allocate",
        _REDUCTION,
    ),
    Technique(
        "tma pipeline",
        "pipeline the loads by TMA over a ring of three or more buffers with one barrier "
        "(`mbarrier`) each, with a prologue and an epilogue",
    ),
    Technique(
        "three partitions",
        "use warp specialization (`gl.warp_specialize`) with three partitions: one loads by TMA, "
        "one computes, one stores the results by TMA",
    ),
    Technique(
        "blocks of three dimensions",
        "compute on blocks of three dimensions that are reshaped, permuted, split or joined, with "
        "every layout written down, and index vectors in slices of these layouts",
    ),
    Technique(
        "persistent programs",
        "launch as many programs as the device has multiprocessors, each looping over tiles, with "
        "the loads of the next tile by TMA (`tma`) under way while this one is computed",
    ),
    Technique(
        "transposed operand",
        "multiply by `warpgroup_mma` with an operand that is transposed as a view of shared "
        "memory, loaded by TMA in the order that memory has",
        _PRODUCT,
    ),
    Technique(
        "scan",
        "use an associative scan with a combine function of your own along one axis of a block, "
        "with all of the axis in each thread or warp as you choose by its layout",
        _SCAN | _REDUCTION,
    ),
    Technique(
        "descriptors of the device",
        "copy tiles by TMA through tensor descriptors that the kernel makes itself, from pointer, "
        "shape and strides",
    ),
    Technique(
        "linear layout",
        "load, or compute in, a layout that is given by its bases for registers, lanes and warps "
        "(`gl.DistributedLinearLayout`), and convert it to the layout of the rest",
    ),
    Technique(
        "two chained products",
        "keep the result of one `warpgroup_mma` on chip as an operand of a second one, whose other "
        "operand is loaded meanwhile",
        _PRODUCT,
    ),
    Technique(
        "last program finishes",
        "let many programs each reduce a part, and the last one to arrive, found by an atomic "
        "counter, finish in the same launch",
        _REDUCTION,
    ),
    Technique(
        "stores under way",
        "store results by TMA from shared memory while the next tile is computed, and reuse the "
        "buffer only when its store is done",
    ),
    Technique(
        "older tensor cores",
        "multiply by `mma_v2` on operands in registers, loaded from shared memory in the layouts "
        "of dot operands",
        _PRODUCT,
    ),
)
