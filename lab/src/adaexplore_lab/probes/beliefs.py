"""What is said to fail and does not: beliefs that a memory had better not repeat.

A belief's witness is what it forbids, which passes on the Tritons that are supported; its remedy is
the way round that the belief asks for. Each can be found in rules that nobody tried.
"""

from __future__ import annotations

from adaexplore_lab.probes.base import Probe, elementwise, with_body
from adaexplore_lab.probes.programs import REDUCE_ROWS, matmul, probe, reference

_SUM = reference("x.sum(1)", "torch.randn(60, 100)")
_LOADED = "x = tl.load(p, mask=m, other=0.0)\n"


def _body(name: str, statement: str, topics: tuple[str, ...], wrong: str, right: str) -> Probe:
    """Of two bodies that square the block `x`."""
    problem, frame = elementwise("x * x")
    return Probe(
        name,
        "compile",
        statement,
        topics,
        problem,
        with_body(frame, wrong),
        with_body(frame, right),
    )


def _rows(name: str, statement: str, topics: tuple[str, ...], wrong: str, right: str) -> Probe:
    """Of two bodies that add up a row."""
    return probe("compile", name, statement, topics, _SUM, REDUCE_ROWS, wrong, right)


BELIEFS: tuple[Probe, ...] = (
    _body(
        "belief-load",
        "`tl.load(pointer + offsets, mask=mask, other=0.0)` cannot be called in a kernel.",
        ("tl.load", "mask", "other", "pointer"),
        "y = x * tl.load(x_ptr + i, mask=m, other=0.0)",
        "y = x * x",
    ),
    _body(
        "belief-load-needs-other",
        "`tl.load` with a mask cannot be called without supplying an `other` argument.",
        ("tl.load", "mask", "other"),
        "y = x * tl.load(x_ptr + i, mask=m)",
        "y = x * tl.load(x_ptr + i, mask=m, other=0.0)",
    ),
    _body(
        "belief-other-is-a-literal",
        "A variable, such as `neg_inf`, cannot be `other` of `tl.load`.",
        ("tl.load", "other", "neg_inf"),
        "neg_inf = -float('inf')\ny = tl.load(x_ptr + i, mask=m, other=neg_inf)\ny = x * y",
        "y = tl.load(x_ptr + i, mask=m, other=-float('inf'))\ny = x * y",
    ),
    _body(
        "belief-arange-of-a-block",
        "`tl.arange(0, BLOCK)` cannot be called in a kernel.",
        ("tl.arange", "BLOCK"),
        "k = tl.arange(0, B)\ny = tl.where(k < B, x * x, 0.0)",
        "y = x * x",
    ),
    _rows(
        "belief-no-loop-variable-in-offsets",
        "The variable of a loop cannot be added to `tl.arange`.",
        ("tl.arange", "for"),
        "y = 0.0\n"
        "for start in range(0, B, 16):\n"
        "    j = start + tl.arange(0, 16)\n"
        "    y += tl.sum(tl.load(x_ptr + row * columns + j, mask=j < columns, other=0.0))",
        _LOADED + "y = tl.sum(x)",
    ),
    _rows(
        "belief-no-sum-method",
        "A block has no `.sum()` method: `tl.sum`.",
        (".sum", "tl.sum"),
        _LOADED + "y = x.to(tl.float32).sum()",
        _LOADED + "y = tl.sum(x.to(tl.float32))",
    ),
    _rows(
        "belief-sum-has-no-dtype",
        "`tl.sum` has no keyword `dtype`: convert before.",
        ("tl.sum", "dtype"),
        _LOADED + "y = tl.sum(x, dtype=tl.float32)",
        _LOADED + "y = tl.sum(x.to(tl.float32))",
    ),
    _body(
        "belief-or-of-two-at-most",
        "Chained boolean operators are refused: no `a or b or c`.",
        ("or", "and"),
        "y = x * x\nif n == 1 or n == 2 or n == 3:\n    y = x * x * 1.0",
        "y = x * x\nif (n == 1) | (n == 2) | (n == 3):\n    y = x * x * 1.0",
    ),
    _rows(
        "belief-builtins-want-a-builder",
        "A function that requires `_builder` cannot be called in a jitted function.",
        ("_builder", "@triton.jit"),
        _LOADED + "y = tl.sum(x)",
        "y = 0.0\nfor k in range(0, columns):\n    y += tl.load(x_ptr + row * columns + k)",
    ),
    probe(
        "compile",
        "belief-no-product-with-itself",
        "`tl.dot(x, x)` of a block with itself cannot be called in a kernel.",
        ("tl.dot", "x, x"),
        reference(
            "a @ b + a[:16, :16] @ a[:16, :16]",
            "torch.randn(16, 16), torch.randn(16, 16)",
            args="a, b",
        ),
        matmul(step="HOLE"),
        'acc += tl.dot(a, b, input_precision="ieee") + tl.dot(a, a, input_precision="ieee")',
        'acc += tl.dot(a, b, input_precision="ieee") + tl.dot(a, a + 0.0, input_precision="ieee")',
    ),
)
