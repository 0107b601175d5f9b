"""Techniques of Triton, so that its unusual parts are tried, and fail, too."""

from __future__ import annotations

from adaexplore.languages.base import Technique

_PRODUCT = frozenset({"tl.dot"})
_REDUCTION = frozenset({"tl.sum", "tl.max", "tl.min", "tl.reduce"})
_ROWS = _REDUCTION | _PRODUCT


TECHNIQUES: tuple[Technique, ...] = (
    Technique(
        "device descriptors",
        "load and store tiles through tensor descriptors made in the kernel "
        "(`tl.make_tensor_descriptor`), not through pointers",
    ),
    Technique(
        "host descriptors",
        "pass tensor descriptors made on the host (`TensorDescriptor` of "
        "`triton.tools.tensor_descriptor`) to the kernel, and load and store tiles through them",
    ),
    Technique(
        "persistent programs",
        "launch as many programs as the device has multiprocessors, each looping over tiles, with "
        "a software-pipelined `tl.range`",
        _ROWS,
    ),
    Technique(
        "warp specialization",
        "have the loop over K, or over tiles, warp-specialized: `tl.range(..., "
        "warp_specialize=True)`",
        _PRODUCT,
    ),
    Technique(
        "batched dot",
        "multiply three-dimensional tiles by one `tl.dot`",
        _PRODUCT,
    ),
    Technique(
        "split products",
        "get the accuracy of fp32 from products of bf16 or fp16 operands, split into parts in the "
        "kernel, with an fp32 accumulator that `tl.dot` is given",
        _PRODUCT,
    ),
    Technique(
        "dot in place of sums",
        "compute the reductions, or the prefix sums, as products with constant matrices by "
        "`tl.dot`, at the precision that the problem asks for",
        _REDUCTION,
    ),
    Technique(
        "tuple reduction",
        "reduce several values at once by one `tl.reduce` over a tuple with a combine function of "
        "your own (mean and variance after Welford or Chan, maximum with sum, value with index)",
        _REDUCTION,
    ),
    Technique(
        "tuple scan",
        "use one `tl.associative_scan` over a tuple with a combine function of your own",
    ),
    Technique("sorting", "have `tl.sort`, `tl.topk` or `tl.flip` do part of the work", _REDUCTION),
    Technique("gather in a tile", "permute or look up inside a tile by `tl.gather`"),
    Technique("histogram", "count or bin by `tl.histogram`, also if only for a check of masks"),
    Technique(
        "join and split",
        "pair values by `tl.join` or `tl.interleave`, and part them by `tl.split`, for vectors of "
        "two elements a lane",
    ),
    Technique(
        "reshape in registers",
        "load one flat or 2D tile and go on in another shape by `tl.reshape`, `tl.permute`, "
        "`tl.trans`, `tl.expand_dims` and broadcasting, with tiles of three or four dimensions",
    ),
    Technique(
        "tree in a loop",
        "combine a tile with itself, halving it by `reshape` and `split` in a `tl.static_range` "
        "loop, in place of a built-in reduction",
        _REDUCTION,
    ),
    Technique(
        "last program finishes",
        "let many programs each reduce a part, and the last one to arrive, found by an atomic "
        "counter with acquire and release semantics, finish in the same launch",
        _REDUCTION,
    ),
    Technique(
        "atomic results",
        "combine partial results of programs by atomics (`tl.atomic_add`, `tl.atomic_max` on "
        "floats, `tl.atomic_cas`), with the memory initialized for every call",
        _ROWS,
    ),
    Technique(
        "grid barrier",
        "let all programs of one launch wait for each other between two phases, by atomics",
        _REDUCTION,
        needs_gpu=True,
    ),
    Technique(
        "inline PTX",
        "do part of the arithmetic by `tl.inline_asm_elementwise`, several elements at a time",
        needs_gpu=True,
    ),
    Technique(
        "libdevice",
        "compute the functions by `triton.language.extra.libdevice`, and by correctly rounded "
        "`tl.div_rn`, `tl.sqrt_rn` and `tl.fma`",
    ),
    Technique(
        "bits",
        "do part of the floating-point arithmetic on bits: bitcasts, shifts, masks, exponents "
        "taken apart, signs by exclusive or",
    ),
    Technique(
        "integer division by multiplication",
        "find indices of several axes from one flat offset with `tl.umulhi` and precomputed "
        "multipliers in place of `//` and `%`",
    ),
    Technique(
        "autotuning",
        "tune by `@triton.autotune` with `prune_configs_by`, `reset_to_zero` or `restore_value`, "
        "and derive constants by `@triton.heuristics`",
    ),
    Technique(
        "functions as parameters",
        "write one generic kernel that takes jitted functions (activation, combine) as "
        "`tl.constexpr` parameters",
    ),
    Technique(
        "tuples",
        "pass tuples of tensors, strides or sizes to the kernel, index and loop over them at "
        "compile time, and return tuples from jitted helpers",
    ),
    Technique(
        "compile-time code",
        "specialize by `tl.constexpr`: branches with different shapes, `tl.static_assert`, "
        "constants computed from other constants, module-level constants, default values",
    ),
    Technique(
        "loops over data",
        "use `while` loops and bounds that are loaded from memory, with values carried from one "
        "iteration to the next",
    ),
    Technique(
        "pointers from integers",
        "pass addresses of several tensors as one int64 tensor and cast them to pointers in the "
        "kernel (grouped work in one launch)",
    ),
    Technique(
        "hints",
        "use `tl.multiple_of`, `tl.max_contiguous`, `tl.assume`, cache modifiers, eviction "
        "policies, volatile loads and `padding_option` where they may help",
    ),
    Technique(
        "element-wise branches",
        "branch for every element by `tl.map_elementwise`, or by scalar `if` in a program an "
        "element or row",
    ),
    Technique(
        "low precision storage",
        "keep what is intermediate in memory as fp16, bf16, fp8 or scaled int8 as far as the "
        "allowed error lets you, with explicit conversions and rounding modes",
        _ROWS,
    ),
    Technique(
        "random numbers",
        "draw from `tl.philox` or `tl.randint4x` in the kernel where the result does not depend on "
        "the numbers (such as jittered tile order)",
    ),
    Technique(
        "implicit product",
        "turn convolutions, pooling or windows into one `tl.dot` over an implicit im2col, masks "
        "included",
        _PRODUCT,
    ),
    Technique(
        "online softmax",
        "fuse all row-wise steps into one pass that rescales as it goes, for rows longer than a "
        "tile, NaN and rows of -inf included",
        _ROWS,
    ),
)
