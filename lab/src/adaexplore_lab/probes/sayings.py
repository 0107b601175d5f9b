"""How models put it: other words for what a probe or a belief says.

Rules that nobody tried repeat what a compiler said, not what is true of it. A saying is found by
these words where the statement has others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SAID: Mapping[str, Sequence[str]] = {
    "no-element-of-a-block": (
        "index a tensor with an int32 scalar tensor index",
        "index a tensor with a constexpr index",
        "index a tensor by a non-constexpr integer variable, as in w[:, c]",
        "take element [0] of tl.zeros((1,), dtype=tl.float32)",
    ),
    "no-assignment-to-an-element": (
        "perform the assignment out_ptr[row * length + i] = acc, an AssertionError",
    ),
    "no-builtin-casts": ("convert a tensor by float()", "convert a tensor by int()"),
    "no-minus-one-in-reshape": ("flatten by .reshape(-1)",),
    "blocks-of-one-shape": (
        "incompatible dimensions of two blocks, such as 32 and 128, that do not broadcast",
        "a mask argument of tl.load made of blocks with incompatible dimensions",
    ),
    "constexpr-is-given": (
        "launch without a required constexpr parameter, such as BLOCK",
        "launch without providing required constexpr positional arguments",
        "launch without the required positional argument meta",
    ),
    "unknown-launch-keyword": (
        "specify the keyword argument meta when launching",
        "give the launch a keyword argument that is unknown",
    ),
    "grid-is-a-tuple": ("pass an integer as the grid",),
    "tiles-fit-shared-memory": (
        "require more shared memory than the hardware limit of the device",
    ),
    "maximum-of-two": ("give two blocks as arguments to tl.max",),
    "lengths-are-constexpr": (
        "tl.arange(0, D) where D is a plain kernel argument, not a constexpr",
        "tl.zeros((D,)) of a size known at run time",
    ),
    "three-grid-axes": ("tl.program_id(3), a fourth axis of the grid",),
    "no-blocks-on-the-host": (
        "use builder operations that require a _builder argument outside of functions compiled "
        "with @triton.jit",
    ),
    "loop-keeps-the-shape": (
        "reassign a loop-carried variable from an initial scalar to a vector of some shape",
    ),
    "no-index-of-a-pointer": ("read x_ptr[i] by an index",),
    "no-chained-comparison": ("multiple, simultaneous or chained comparisons like 0 <= i < n",),
    "belief-load": (
        "tl.load(pointer + index)",
        "tl.load(pointers, mask=mask, other=0.0)",
    ),
    "belief-arange-of-a-block": ("tl.arange(0, BLOCK_C)", "tl.arange(0, BLOCK)"),
    "belief-no-sum-method": ("the .sum() method of an expression such as x.to(tl.float32)",),
    "belief-builtins-want-a-builder": (
        "a function which requires a _builder argument, inside a jitted function",
    ),
}
