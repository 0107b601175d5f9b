"""The functions of `triton.language` and libdevice: arguments, dtypes, shapes, what is missing."""

from __future__ import annotations

from adaexplore_lab.probes.base import Probe, elementwise, with_body

_HALF = "torch.randn(1000).half()"
_WHOLE = "torch.randint(0, 100, (1000,), dtype=torch.int32)"
_LIBDEVICE = "from triton.language.extra import libdevice"

_COMBINED = """
@triton.jit
def combined(a, b):
    return a + b


@triton.jit
def total(x, COMBINE: tl.constexpr):
    return tl.reduce(x, 0, COMBINE)
"""

_ROWS = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x_ptr, y_ptr, rows, cols, R: tl.constexpr, C: tl.constexpr):
    i = tl.program_id(0) * R + tl.arange(0, R)
    j = tl.arange(0, C)
    m = (i < rows)[:, None] & (j < cols)[None, :]
    x = tl.load(x_ptr + i[:, None] * cols + j[None, :], mask=m, other=0.0)
BODY
    tl.store(y_ptr + i, y, mask=i < rows)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty(rows, dtype=RESULT, device=x.device)
        grid = (triton.cdiv(rows, 4),)
        kernel[grid](x, y, rows, cols, R=4, C=triton.next_power_of_2(cols))
        return y
"""
"""The body computes `y`, a value for each row, from the tile `x` of R whole rows."""

_PRODUCT = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, S: tl.constexpr, T: tl.constexpr):
    i = tl.program_id(0) * S + tl.arange(0, S)
    j = tl.program_id(1) * S + tl.arange(0, S)
    acc = tl.zeros((S, S), tl.float32)
    for start in range(0, K, T):
        k = start + tl.arange(0, T)
        a_mask = (i < M)[:, None] & (k < K)[None, :]
        b_mask = (k < K)[:, None] & (j < N)[None, :]
        a = tl.load(a_ptr + i[:, None] * K + k[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + j[None, :], mask=b_mask, other=0.0)
    BODY
    c_mask = (i < M)[:, None] & (j < N)[None, :]
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc, mask=c_mask)


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[1]
        c = torch.empty(M, N, dtype=torch.float32, device=a.device)
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
        kernel[grid](a.contiguous(), b.contiguous(), c, M, N, K, S=32, T=32)
        return c
"""
"""The body adds the product of the tiles `a` and `b` to `acc`."""


def _reference(parameters: str, expression: str, inputs: str) -> str:
    return f"""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, {parameters}):
        return {expression}


def get_inputs():
    return [{inputs}]
""".lstrip()


def _made(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    programs: tuple[str, str, str],
) -> Probe:
    reference, witness, remedy = programs
    return Probe(name, "compile", statement, topics, reference, witness, remedy)


def _block(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    wrong: str,
    right: str,
    of: str = "x * x",
    inputs: str = "torch.randn(1000)",
    before: str = "",
) -> Probe:
    """Of two bodies that compute `y` from the block `x`."""
    reference, frame = elementwise(of, inputs=inputs, before=before)
    programs = (reference, with_body(frame, wrong), with_body(frame, right))
    return _made(name, statement, topics, programs)


def _rows(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    wrong: str,
    right: str,
    of: str = "x.sum(1)",
    result: str = "x.dtype",
) -> Probe:
    """Of two bodies that reduce the rows of the tile `x`."""
    frame = _ROWS.lstrip().replace("RESULT", result)
    reference = _reference("x", of, "torch.randn(60, 100)")
    return _made(
        name, statement, topics, (reference, with_body(frame, wrong), with_body(frame, right))
    )


def _product(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    wrong: str,
    right: str,
    of: str = "a.float() @ b.float()",
    inputs: str = "torch.randn(64, 64).half(), torch.randn(64, 64).half()",
) -> Probe:
    """Of two steps of a matrix product."""
    frame = _PRODUCT.lstrip()
    reference = _reference("a, b", of, inputs)
    first, second = (frame.replace("BODY", "    " + step) for step in (wrong, right))
    return _made(name, statement, topics, (reference, first, second))


def _missing(
    function: str, instead: str, topics: tuple[str, ...], wrong: str, right: str, of: str
) -> Probe:
    """Of a function that does not exist."""
    name = "no-" + function.replace(".", "-").replace("_", "-")
    statement = f"There is no `{function}`: {instead}."
    return _block(name, statement, (function, *topics), wrong, right, of, before=_LIBDEVICE)


API: tuple[Probe, ...] = (
    # Making blocks
    _block(
        "arange-takes-two-bounds",
        "`tl.arange` takes a start and an end: `tl.arange(0, n)`, not `tl.arange(n)`.",
        ("tl.arange",),
        "y = x * x + tl.arange(B) * 0.0",
        "y = x * x + tl.arange(0, B) * 0.0",
    ),
    _block(
        "arange-has-no-step",
        "`tl.arange` has no step: multiply the places by it.",
        ("tl.arange",),
        "y = x * x + tl.arange(0, 2 * B, 2) * 0.0",
        "y = x * x + tl.arange(0, B) * 2 * 0.0",
    ),
    _block(
        "arange-has-no-dtype",
        "`tl.arange` has no `dtype` and gives int32: convert by `.to(...)`.",
        ("tl.arange", "dtype", ".to"),
        "y = x * x + tl.arange(0, B, dtype=tl.float32) * 0.0",
        "y = x * x + tl.arange(0, B).to(tl.float32) * 0.0",
    ),
    _block(
        "arange-starts-at-a-constant",
        "The bounds of `tl.arange` are constants: add a run-time start to `tl.arange(0, B)`.",
        ("tl.arange", "tl.constexpr"),
        "y = x * x + tl.arange(n, n + B) * 0.0",
        "y = x * x + (n + tl.arange(0, B)) * 0.0",
    ),
    _block(
        "shapes-are-powers-of-two",
        "Every dimension of `tl.zeros` and `tl.full` is a power of two: round it up and mask.",
        ("tl.zeros", "tl.full", "shape"),
        "y = x * x + tl.sum(tl.zeros((100,), tl.float32))",
        "y = x * x + tl.sum(tl.zeros((128,), tl.float32))",
    ),
    _block(
        "shapes-are-constants",
        "A shape is known at compile time: pass its sizes as `tl.constexpr`.",
        ("tl.zeros", "tl.full", "shape", "tl.constexpr"),
        "y = x * x + tl.sum(tl.zeros((n,), tl.float32))",
        "y = x * x + tl.sum(tl.zeros((B,), tl.float32))",
    ),
    _block(
        "zeros-takes-a-dtype",
        "`tl.zeros` and `tl.full` need a dtype: there is no default.",
        ("tl.zeros", "tl.full", "dtype"),
        "y = tl.zeros((B,)) + x * x",
        "y = tl.zeros((B,), tl.float32) + x * x",
    ),
    _block(
        "shapes-of-a-million",
        "A block has 1,048,576 elements at most: loop over smaller ones.",
        ("tl.zeros", "tl.arange", "shape"),
        "y = x * x + tl.sum(tl.zeros((2097152,), tl.float32))",
        "y = x * x + 2 * tl.sum(tl.zeros((1024,), tl.float32))",
    ),
    _missing(
        "tl.ones",
        "`tl.full(shape, 1.0, dtype)`",
        ("tl.full",),
        "y = tl.ones((B,), tl.float32) * x",
        "y = tl.full((B,), 1.0, tl.float32) * x",
        "x * 1",
    ),
    _missing(
        "tl.full_like",
        "`tl.full(x.shape, value, x.dtype)`, or `tl.zeros_like(x)`",
        ("tl.full", "tl.zeros_like"),
        "y = x * tl.full_like(x, 2.0)",
        "y = x * tl.full(x.shape, 2.0, x.dtype)",
        "x * 2",
    ),
    _missing(
        "tl.constant",
        "write the number, or `tl.full` for a block of it",
        ("tl.full",),
        "y = x * tl.constant(2.0, tl.float32)",
        "y = x * 2.0",
        "x * 2",
    ),
    _missing(
        "tl.inf",
        "`float('inf')`",
        ("inf", "float"),
        "y = tl.where(m, x, -tl.inf)",
        "y = tl.where(m, x, -float('inf'))",
        "x * 1",
    ),
    # Functions that are missing
    _missing(
        "tl.tanh",
        "`libdevice.tanh`, or `2 * tl.sigmoid(2 * x) - 1`",
        ("libdevice.tanh",),
        "y = tl.tanh(x)",
        "y = libdevice.tanh(x)",
        "torch.tanh(x)",
    ),
    _missing(
        "tl.math.tanh",
        "`libdevice.tanh` of `triton.language.extra`",
        ("libdevice.tanh",),
        "y = tl.math.tanh(x)",
        "y = libdevice.tanh(x)",
        "torch.tanh(x)",
    ),
    _missing(
        "tl.libdevice",
        "`from triton.language.extra import libdevice`",
        ("libdevice",),
        "y = tl.libdevice.tanh(x)",
        "y = libdevice.tanh(x)",
        "torch.tanh(x)",
    ),
    _missing(
        "tl.pow",
        "`libdevice.pow`, or multiply",
        ("libdevice.pow", "**"),
        "y = tl.pow(x, 3.0)",
        "y = libdevice.pow(x, 3.0)",
        "x ** 3",
    ),
    _missing(
        "tl.math.pow",
        "`libdevice.pow`, or multiply",
        ("libdevice.pow", "**"),
        "y = tl.math.pow(x, 3.0)",
        "y = libdevice.pow(x, 3.0)",
        "x ** 3",
    ),
    _missing(
        "tl.log1p",
        "`libdevice.log1p`",
        ("libdevice.log1p", "softplus"),
        "y = tl.log1p(tl.exp(x))",
        "y = libdevice.log1p(tl.exp(x))",
        "torch.log1p(torch.exp(x))",
    ),
    _missing(
        "tl.round",
        "`libdevice.rint`",
        ("libdevice.rint",),
        "y = tl.round(x)",
        "y = libdevice.rint(x)",
        "torch.round(x)",
    ),
    _missing(
        "tl.relu",
        "`tl.maximum(x, 0.0)`",
        ("relu", "tl.maximum"),
        "y = tl.relu(x)",
        "y = tl.maximum(x, 0.0)",
        "torch.relu(x)",
    ),
    _missing(
        "tl.gelu",
        "`0.5 * x * (1 + tl.erf(x / sqrt(2)))`",
        ("gelu", "tl.erf"),
        "y = tl.gelu(x)",
        "y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))",
        "nn.functional.gelu(x)",
    ),
    _missing(
        "tl.silu",
        "`x * tl.sigmoid(x)`",
        ("silu", "tl.sigmoid"),
        "y = tl.silu(x)",
        "y = x * tl.sigmoid(x)",
        "nn.functional.silu(x)",
    ),
    _missing(
        "tl.sign",
        "compare by `tl.where`",
        ("sign", "tl.where"),
        "y = tl.sign(x)",
        "y = tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0))",
        "torch.sign(x)",
    ),
    _missing(
        "tl.div",
        "`x / y`, or `x // y` of integers",
        ("/", "//"),
        "y = tl.div(x, 3.0)",
        "y = x / 3.0",
        "x / 3",
    ),
    _missing("tl.square", "`x * x`", ("**",), "y = tl.square(x)", "y = x * x", "x * x"),
    _missing(
        "tl.isnan",
        "`x != x`",
        ("nan", "!="),
        "y = tl.where(tl.isnan(x), 0.0, x)",
        "y = tl.where(x != x, 0.0, x)",
        "x * 1",
    ),
    _missing(
        "tl.logical_and",
        "`&` of conditions",
        ("&", "mask"),
        "y = tl.where(tl.logical_and(x > 0, m), x, 0.0)",
        "y = tl.where((x > 0) & m, x, 0.0)",
        "torch.relu(x)",
    ),
    _missing(
        "tl.mean",
        "`tl.sum` divided by the number of elements",
        ("mean", "tl.sum"),
        "y = x * x + tl.mean(x) * 0.0",
        "y = x * x + tl.sum(x) / B * 0.0",
        "x * x",
    ),
    _missing(
        "tl.var",
        "`tl.sum` of the squared differences from the mean",
        ("var", "tl.sum"),
        "y = x * x + tl.var(x) * 0.0",
        "d = x - tl.sum(x) / B\ny = x * x + tl.sum(d * d) / B * 0.0",
        "x * x",
    ),
    _missing(
        "tl.any",
        "`tl.max` of the condition as integers",
        ("any", "tl.max"),
        "y = x * x + tl.any(x > 9) * 0.0",
        "y = x * x + tl.max((x > 9).to(tl.int32)) * 0.0",
        "x * x",
    ),
    _missing(
        "tl.all",
        "`tl.min` of the condition as integers",
        ("all", "tl.min"),
        "y = x * x + tl.all(x > 9) * 0.0",
        "y = x * x + tl.min((x > 9).to(tl.int32)) * 0.0",
        "x * x",
    ),
    _missing(
        "tl.clip",
        "`tl.minimum(tl.maximum(x, low), high)`",
        ("clamp", "tl.minimum"),
        "y = tl.clip(x, 0.0, 1.0)",
        "y = tl.minimum(tl.maximum(x, 0.0), 1.0)",
        "torch.clamp(x, 0, 1)",
    ),
    _missing(
        "tl.bool",
        "the dtype of conditions is `tl.int1`",
        ("tl.int1", "dtype"),
        "y = tl.where(x.to(tl.bool), x, 0.0)",
        "y = tl.where((x != 0).to(tl.int1), x, 0.0)",
        "x * 1",
    ),
    # Functions of one element
    _block(
        "exp-of-fp16",
        "`tl.exp`, `tl.log`, `tl.sqrt`, `tl.erf` and so on take fp32 or fp64, not fp16 or bf16.",
        ("tl.exp", "tl.log", "tl.sqrt", "tl.sin", "tl.erf", "fp16", "bf16"),
        "y = tl.exp(x)",
        "y = tl.exp(x.to(tl.float32))",
        of="torch.exp(x)",
        inputs=_HALF,
    ),
    _block(
        "sigmoid-of-fp16",
        "`tl.sigmoid` and `tl.softmax` take fp32 or fp64: convert fp16 and bf16.",
        ("tl.sigmoid", "tl.softmax", "fp16", "bf16"),
        "y = tl.sigmoid(x)",
        "y = tl.sigmoid(x.to(tl.float32))",
        of="torch.sigmoid(x)",
        inputs=_HALF,
    ),
    _block(
        "libdevice-of-fp16",
        "Functions of libdevice take fp32 or fp64: convert fp16 and bf16.",
        ("libdevice.tanh", "libdevice.pow", "fp16", "bf16"),
        "y = libdevice.tanh(x)",
        "y = libdevice.tanh(x.to(tl.float32))",
        of="torch.tanh(x)",
        inputs=_HALF,
        before=_LIBDEVICE,
    ),
    _block(
        "sqrt-of-integers",
        "`tl.sqrt`, `tl.exp` and so on do not take integers: convert to fp32.",
        ("tl.sqrt", "tl.exp", "int32"),
        "y = x + tl.sqrt(x) * 0",
        "y = x + tl.sqrt(x.to(tl.float32)) * 0",
        of="x * 1",
        inputs=_WHOLE,
    ),
    _block(
        "pow-of-one-dtype",
        "`libdevice.pow` takes an exponent of the base's dtype, or int32: not int64.",
        ("libdevice.pow", "dtype"),
        "y = libdevice.pow(x, x.to(tl.int64))",
        "y = libdevice.pow(x, x.to(tl.int64).to(tl.float32))",
        of="x ** x.trunc()",
        before=_LIBDEVICE,
    ),
    _block(
        "clamp-of-integers",
        "Older Tritons clamp floats only: use `tl.minimum` and `tl.maximum` on integers.",
        ("tl.clamp", "tl.minimum", "tl.maximum", "int32"),
        "y = tl.clamp(x, 10, 20)",
        "y = tl.minimum(tl.maximum(x, 10), 20)",
        of="torch.clamp(x, 10, 20)",
        inputs=_WHOLE,
    ),
    _block(
        "maximum-of-two",
        "`tl.max` reduces one block: the larger of two, element by element, is `tl.maximum`.",
        ("tl.max", "tl.maximum", "tl.min", "tl.minimum", "relu"),
        "y = tl.max(x, 0.0)",
        "y = tl.maximum(x, 0.0)",
        of="torch.relu(x)",
    ),
    _block(
        "where-takes-three",
        "`tl.where` takes a condition and two values: it does not return places.",
        ("tl.where",),
        "y = x * x + tl.sum(tl.where(x > 0)) * 0.0",
        "y = x * x + tl.sum(tl.where(x > 0, 1, 0)) * 0.0",
    ),
    _block(
        "constants-fit-the-dtype",
        "A constant fits the integer dtype it meets: widen the block before adding 300 to int8.",
        ("int8", "int16", "+", ".to"),
        "y = x * x + (i.to(tl.int8) + 300) * 0.0",
        "y = x * x + (i.to(tl.int32) + 300) * 0.0",
    ),
    _block(
        "signs-do-not-mix",
        "`//` and `%` need integers of one signedness: convert both.",
        ("//", "%", "uint32", "int32"),
        "y = x * x + (i // i.to(tl.uint32)) * 0.0",
        "y = x * x + (i // (i + 1)) * 0.0",
    ),
    # Casts
    _block(
        "no-torch-dtype",
        "`.to` takes Triton's dtypes (`tl.float16`), not torch's.",
        (".to", "torch.float16", "dtype"),
        "y = x.to(torch.float32) * x",
        "y = x.to(tl.float32) * x",
    ),
    _block(
        "no-dtype-by-name",
        '`.to` takes a dtype, not its name: `tl.float32`, not `"float32"`.',
        (".to", "str", "dtype"),
        'y = x.to("float32") * x',
        "y = x.to(tl.float32) * x",
    ),
    _block(
        "no-python-dtype",
        "`.to` takes Triton's dtypes: `tl.float32`, not `float`.",
        (".to", "float", "dtype"),
        "y = x.to(float) * x",
        "y = x.to(tl.float32) * x",
    ),
    _block(
        "dtypes-are-not-called",
        "A dtype is no function: convert by `.to(tl.float32)`, not `tl.float32(...)`.",
        (".to", "tl.float32", "dtype"),
        "y = tl.float32(x) * x",
        "y = x.to(tl.float32) * x",
    ),
    _block(
        "element-type-of-a-pointer",
        "A pointer's `dtype` is a pointer type: convert to `pointer.dtype.element_ty`.",
        (".to", "pointer", "element_ty", "dtype"),
        "y = (x * x).to(y_ptr.dtype)",
        "y = (x * x).to(y_ptr.dtype.element_ty)",
    ),
    _block(
        "no-tensor-methods",
        "Blocks lack torch's methods (`.float()`, `.half()`, `.view(dtype)`): use `.to(...)`.",
        (".float", ".half", ".to"),
        "y = x.float() * x",
        "y = x.to(tl.float32) * x",
    ),
    _block(
        "bitcast-of-one-width",
        "`bitcast=True` needs dtypes of one width.",
        (".to", "bitcast"),
        "y = x * x + x.to(tl.int16, bitcast=True) * 0",
        "y = x * x + x.to(tl.int32, bitcast=True) * 0",
    ),
    # Reductions and scans
    _rows(
        "sum-takes-keep-dims",
        "Reductions take `keep_dims=True`, not `keepdim`.",
        ("tl.sum", "tl.max", "keepdim", "keep_dims"),
        "y = tl.sum(tl.sum(x, axis=1, keepdim=True), axis=1)",
        "y = tl.sum(tl.sum(x, axis=1, keep_dims=True), axis=1)",
    ),
    _rows(
        "sum-takes-axis",
        "Reductions take `axis`, not `dim`.",
        ("tl.sum", "tl.max", "dim", "axis"),
        "y = tl.sum(x, dim=1)",
        "y = tl.sum(x, axis=1)",
    ),
    _rows(
        "sum-over-one-axis",
        "A reduction takes one axis, not a tuple: reduce twice.",
        ("tl.sum", "axis", "tuple"),
        "y = tl.sum(x, axis=1) + tl.sum(x, axis=(0, 1)) * 0.0",
        "y = tl.sum(x, axis=1) + tl.sum(tl.sum(x, axis=1), axis=0) * 0.0",
    ),
    _rows(
        "axis-of-the-block",
        "Axes are those of the block, not of the tensor: a block of one dimension has axis 0 only.",
        ("tl.sum", "tl.max", "axis"),
        "y = tl.sum(x, axis=1) + tl.sum(i, axis=1) * 0.0",
        "y = tl.sum(x, axis=1) + tl.sum(i, axis=0) * 0.0",
    ),
    _rows(
        "argmax-needs-an-axis",
        "`tl.argmax` and `tl.argmin` need an axis.",
        ("tl.argmax", "tl.argmin", "axis"),
        "y = tl.argmax(tl.where(m, x, -float('inf')))",
        "y = tl.argmax(tl.where(m, x, -float('inf')), axis=1)",
        of="x.argmax(1).to(torch.int32)",
        result="torch.int32",
    ),
    _rows(
        "reduce-takes-a-jitted-function",
        "`tl.reduce` and `tl.associative_scan` combine by a jitted function, not by one of `tl`.",
        ("tl.reduce", "tl.associative_scan", "@triton.jit"),
        "y = tl.reduce(x, 1, tl.add)",
        "y = tl.reduce(x, 1, tl.standard._sum_combine)",
    ),
    _block(
        "combine-by-a-function-s-own-name",
        "`tl.reduce` and `tl.associative_scan` take a jitted function by its name: one that came "
        "in as a `tl.constexpr` argument can be called, but not be handed on.",
        ("tl.reduce", "tl.associative_scan", "tl.constexpr", "combine"),
        "y = x * x + total(x, combined) * 0.0",
        "y = x * x + tl.reduce(x, 0, combined) * 0.0",
        before=_COMBINED,
    ),
    _rows(
        "sort-the-last-axis",
        "`tl.sort` sorts along the last axis only: transpose first.",
        ("tl.sort", "tl.trans"),
        "y = tl.sum(x, axis=1) + tl.sum(tl.sort(x, 0)) * 0.0",
        "y = tl.sum(x, axis=1) + tl.sum(tl.sort(tl.trans(x), 1)) * 0.0",
    ),
    _rows(
        "rows-broadcast-by-none",
        "A reduction drops its axis: give it back by `[:, None]` before using it with the tile.",
        ("tl.max", "tl.sum", "broadcast", "[:, None]"),
        "y = tl.sum(x - tl.max(x, axis=1) * 0.0, axis=1)",
        "y = tl.sum(x - tl.max(x, axis=1)[:, None] * 0.0, axis=1)",
    ),
    # Shapes
    _rows(
        "no-minus-one-in-reshape",
        "`tl.reshape` takes no -1: write every size.",
        ("tl.reshape", "shape", "-1"),
        "y = tl.sum(x, axis=1) + tl.sum(tl.reshape(x, (-1,))) * 0.0",
        "y = tl.sum(x, axis=1) + tl.sum(tl.reshape(x, (R * C,))) * 0.0",
    ),
    _rows(
        "reshape-keeps-the-number",
        "`tl.reshape` keeps the number of elements: `tl.broadcast_to` repeats them.",
        ("tl.reshape", "tl.broadcast_to", "shape"),
        "y = tl.sum(x, axis=1) + tl.sum(tl.reshape(i, (R, C)), axis=1) * 0.0",
        "y = tl.sum(x, axis=1) + tl.sum(tl.broadcast_to(i[:, None], (R, C)), axis=1) * 0.0",
    ),
    _rows(
        "broadcast-adds-no-axis-at-the-end",
        "`tl.broadcast_to` adds no axis at the end: index by `[:, None]` first.",
        ("tl.broadcast_to", "[:, None]", "shape"),
        "y = tl.sum(tl.broadcast_to(i, (R, C)) * 0.0 + x, axis=1)",
        "y = tl.sum(tl.broadcast_to(i[:, None], (R, C)) * 0.0 + x, axis=1)",
    ),
    _rows(
        "trans-takes-all-dimensions",
        "`tl.trans` takes all dimensions in their new order, or none: it does not swap two axes.",
        ("tl.trans", "tl.permute", ".T"),
        "y = tl.sum(tl.sum(tl.trans(x[None], 1, 2), axis=1), axis=0)",
        "y = tl.sum(tl.sum(tl.trans(x[None], 0, 2, 1), axis=1), axis=0)",
    ),
    _rows(
        "no-squeeze",
        "Older Tritons have no `tl.squeeze`: use `tl.reshape`.",
        ("tl.squeeze", "tl.reshape"),
        "y = tl.squeeze(tl.sum(x, axis=1, keep_dims=True), 1)",
        "y = tl.reshape(tl.sum(x, axis=1, keep_dims=True), (R,))",
    ),
    _block(
        "cat-reorders",
        "In older Tritons `tl.cat` needs `can_reorder=True`: `tl.join` keeps the order.",
        ("tl.cat", "tl.join", "can_reorder"),
        "y = x * x + tl.sum(tl.cat(x, x)) * 0.0",
        "y = x * x + tl.sum(tl.cat(x, x, can_reorder=True)) * 0.0",
    ),
    _block(
        "join-takes-two",
        "`tl.join` takes two blocks: join twice for four.",
        ("tl.join", "stack"),
        "y = x * x + tl.sum(tl.join((x, x))) * 0.0",
        "y = x * x + tl.sum(tl.join(x, x)) * 0.0",
    ),
    # Loads and stores
    _block(
        "other-needs-a-mask",
        "`tl.load` takes `other` only beside a `mask`.",
        ("tl.load", "other", "mask"),
        "y = x * x + tl.load(x_ptr, other=0.0) * 0.0",
        "y = x * x + tl.load(x_ptr, mask=n > 0, other=0.0) * 0.0",
    ),
    _block(
        "one-pointer-one-mask",
        "A mask has the shape of the pointers: a single pointer takes no block as its mask.",
        ("tl.load", "mask", "pointer"),
        "y = x * x + tl.load(x_ptr, mask=m, other=0.0) * 0.0",
        "y = x * x + tl.load(x_ptr + i, mask=m, other=0.0) * 0.0",
    ),
    _block(
        "one-pointer-one-value",
        "A single pointer stores no block: add offsets to it.",
        ("tl.store", "pointer", "tl.arange"),
        "y = x * x\ntl.store(y_ptr, y)",
        "y = x * x\ntl.store(y_ptr + i, y, mask=m)",
    ),
    _block(
        "masks-are-conditions",
        "A mask is a condition, not a number: compare.",
        ("tl.load", "tl.store", "mask", "bool"),
        "y = x * tl.load(x_ptr + i, mask=m.to(tl.float32), other=0.0)",
        "y = x * tl.load(x_ptr + i, mask=m, other=0.0)",
    ),
    _block(
        "load-adds-offsets",
        "`tl.load` takes pointers, then a mask: add the offsets to the pointer.",
        ("tl.load", "pointer", "offset"),
        "y = x * tl.load(x_ptr, i, m)",
        "y = x * tl.load(x_ptr + i, m)",
    ),
    _block(
        "load-needs-a-pointer",
        "`tl.load` reads through pointers: offsets alone are numbers.",
        ("tl.load", "pointer", "offset"),
        "y = x * tl.load(i, mask=m, other=0.0)",
        "y = x * tl.load(x_ptr + i, mask=m, other=0.0)",
    ),
    _block(
        "load-has-no-dtype",
        "`tl.load` has no `dtype`: convert what it returns.",
        ("tl.load", "dtype", ".to"),
        "y = x * tl.load(x_ptr + i, mask=m, other=0.0, dtype=tl.float32)",
        "y = x * tl.load(x_ptr + i, mask=m, other=0.0).to(tl.float32)",
    ),
    _block(
        "names-of-evictions",
        'Older Tritons know the evictions "evict_first" and "evict_last", not "evict_normal".',
        ("tl.load", "eviction_policy"),
        'y = x * tl.load(x_ptr + i, mask=m, other=0.0, eviction_policy="evict_normal")',
        "y = x * tl.load(x_ptr + i, mask=m, other=0.0)",
    ),
    _block(
        "names-of-cache-modifiers",
        'In older Tritons the names of `cache_modifier` begin with a dot: ".ca", ".cg", ".cv".',
        ("tl.load", "cache_modifier"),
        'y = x * tl.load(x_ptr + i, mask=m, other=0.0, cache_modifier="cg")',
        'y = x * tl.load(x_ptr + i, mask=m, other=0.0, cache_modifier=".cg")',
    ),
    _block(
        "evict-first-is-not-cached-in-l2-only",
        '`eviction_policy="evict_first"` and `cache_modifier=".cg"` do not go together on a load: '
        "ptxas refuses the pair.",
        ("tl.load", "cache_modifier", "eviction_policy"),
        'y = x * tl.load(x_ptr + i, mask=m, cache_modifier=".cg", eviction_policy="evict_first")',
        'y = x * tl.load(x_ptr + i, mask=m, eviction_policy="evict_first")',
    ),
    _block(
        "store-has-no-other",
        "`tl.store` has no `other`: what its mask leaves out is not written.",
        ("tl.store", "other", "mask"),
        "y = x * x\ntl.store(y_ptr + i, y, mask=m, other=0.0)",
        "y = x * x\ntl.store(y_ptr + i, y, mask=m)",
    ),
    _block(
        "block-pointers",
        "Newer Tritons have no `tl.make_block_ptr`: compute pointers, or use a tensor descriptor.",
        ("tl.make_block_ptr", "tl.load", "boundary_check"),
        """
        block = tl.make_block_ptr(x_ptr, (n,), (1,), (tl.program_id(0) * B,), (B,), (0,))
        y = x * tl.load(block, boundary_check=(0,))
        """,
        "y = x * tl.load(x_ptr + i, mask=m)",
    ),
    _block(
        "atomic-max-of-fp16",
        "`tl.atomic_max` and `tl.atomic_min` take no fp16 and no bf16: use fp32.",
        ("tl.atomic_max", "tl.atomic_min", "fp16", "bf16"),
        "y = x + x\ntl.atomic_max(y_ptr + i, y, mask=m)",
        "y = x + x",
        of="x + x",
        inputs=_HALF,
    ),
    # Programs
    _block(
        "program-id-needs-an-axis",
        "`tl.program_id` needs an axis.",
        ("tl.program_id", "axis"),
        "y = x * x + tl.program_id() * 0.0",
        "y = x * x + tl.program_id(0) * 0.0",
    ),
    _block(
        "static-assert-of-constants",
        "`tl.static_assert` takes what is known at compile time: use `tl.device_assert` otherwise.",
        ("tl.static_assert", "tl.device_assert"),
        "y = x * x\ntl.static_assert(n > 0)",
        "y = x * x\ntl.device_assert(n > 0)",
    ),
    _block(
        "random-numbers-take-offsets",
        "`tl.rand` and `tl.randn` take a seed and a block of offsets, not a shape alone.",
        ("tl.rand", "tl.randn", "dropout"),
        "y = x * x + tl.rand((B,)) * 0.0",
        "y = x * x + tl.rand(0, i) * 0.0",
    ),
    # tl.dot
    _product(
        "no-matmul-operator",
        "Blocks have no `@`: use `tl.dot`.",
        ("@", "tl.dot", "matmul"),
        "acc += a @ b",
        "acc += tl.dot(a, b)",
    ),
    _product(
        "no-tl-matmul",
        "There is no `tl.matmul`: use `tl.dot`.",
        ("tl.matmul", "tl.dot", "matmul"),
        "acc += tl.matmul(a, b)",
        "acc += tl.dot(a, b)",
    ),
    _product(
        "dot-of-one-dtype",
        "Both operands of `tl.dot` have one dtype: convert one of them.",
        ("tl.dot", "dtype", ".to"),
        "acc = tl.dot(a, b, acc)",
        "acc = tl.dot(a.to(tl.float32), b, acc)",
        inputs="torch.randn(64, 64).half(), torch.randn(64, 64)",
    ),
    _product(
        "dot-of-vectors",
        "`tl.dot` takes matrices: multiply by a vector as a broadcast product and `tl.sum`.",
        ("tl.dot", "tl.sum", "matvec"),
        "acc += tl.dot(a, b) + tl.dot(a, k.to(tl.float16))[:, None] * 0.0",
        "acc += tl.dot(a, b) + tl.sum(a * k[None, :], axis=1)[:, None] * 0.0",
    ),
    _product(
        "dot-transposes-nothing",
        "`tl.dot` has no `trans_a` or `trans_b`: pass `tl.trans(b)`.",
        ("tl.dot", "tl.trans", "trans_b"),
        "acc += tl.dot(a, tl.trans(b), trans_b=True)",
        "acc += tl.dot(a, tl.trans(tl.trans(b)))",
    ),
    _product(
        "dot-needs-sixteen",
        "`tl.dot` of 16-bit operands needs K of 16 or more.",
        ("tl.dot", "shape", "fp16", "bf16"),
        "acc += tl.dot(a, b) + tl.dot(tl.zeros((32, 8), a.dtype), tl.zeros((8, 32), a.dtype))",
        "acc += tl.dot(a, b) + tl.dot(tl.zeros((32, 16), a.dtype), tl.zeros((16, 32), a.dtype))",
    ),
    _product(
        "dot-inner-sizes",
        "The inner sizes of `tl.dot` agree: K columns on the left, K rows on the right.",
        ("tl.dot", "shape"),
        "acc += tl.dot(a, b) + tl.dot(tl.zeros((32, 64), a.dtype), b)",
        "acc += tl.dot(a, b) + tl.dot(tl.zeros((32, 32), a.dtype), b)",
    ),
    _product(
        "dot-precision-names",
        '`input_precision` of `tl.dot` is "tf32", "tf32x3" or "ieee": not "fp32".',
        ("tl.dot", "input_precision", "tf32"),
        'acc = tl.dot(a, b, acc, input_precision="fp32")',
        'acc = tl.dot(a, b, acc, input_precision="ieee")',
    ),
    _product(
        "dot-accumulates-its-dtype",
        "Older Tritons want fp32 as the accumulator of `tl.dot`, unless `out_dtype` is another.",
        ("tl.dot", "acc", "out_dtype", "fp16"),
        "acc += tl.dot(a, b, tl.zeros((S, S), tl.float16))",
        "acc += tl.dot(a, b, tl.zeros((S, S), tl.float32))",
    ),
    _product(
        "dot-of-integers",
        "`tl.dot` takes no int32: convert to a float, or use int8.",
        ("tl.dot", "int32", "int8"),
        "acc += tl.dot(a.to(tl.int32), b.to(tl.int32)).to(tl.float32)",
        "acc += tl.dot(a.to(tl.float32), b.to(tl.float32))",
        inputs="torch.randint(0, 5, (64, 64), dtype=torch.int32), "
        "torch.randint(0, 5, (64, 64), dtype=torch.int32)",
    ),
)
