"""Numerics: precision lost, ranges left, and integers that are not Python's."""

from __future__ import annotations

from adaexplore_lab.probes.base import Probe, elementwise, with_body
from adaexplore_lab.probes.programs import (
    CHUNKS,
    MAP_ROWS,
    REDUCE_ROWS,
    matmul,
    probe,
    program,
    reference,
)

_PRODUCT = reference("a @ b", "torch.randn(40, 200), torch.randn(200, 24)", args="a, b")
_HALF_PRODUCT = reference(
    "a.float() @ b.float()",
    "(300 * torch.randn(40, 100)).half(), (300 * torch.randn(100, 24)).half()",
    args="a, b",
)


def _map(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    of: str,
    wrong: str,
    right: str,
    inputs: str = "torch.randn(1000)",
) -> Probe:
    problem, candidate = elementwise(of, inputs=inputs)
    return Probe(
        name,
        "numerics",
        statement,
        topics,
        problem,
        with_body(candidate, wrong),
        with_body(candidate, right),
    )


def _rows(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    of: str,
    wrong: str,
    right: str,
    *,
    inputs: str = "torch.randn(30, 100)",
    template: str = REDUCE_ROWS,
) -> Probe:
    problem = reference(of, inputs)
    return probe("numerics", name, statement, topics, problem, template, wrong, right)


def _matmul(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    wrong: str,
    right: str,
    *,
    of: str = _PRODUCT,
) -> Probe:
    template = matmul(step="HOLE")
    return probe("numerics", name, statement, topics, of, template, wrong, right)


def _integers(
    name: str, statement: str, topics: tuple[str, ...], of: str, wrong: str, right: str
) -> Probe:
    """Of an integer x from -100 to 100, to int64."""
    template = program(
        """
        @triton.jit
        def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
            i = tl.program_id(0) * B + tl.arange(0, B)
            m = i < n
            x = tl.load(x_ptr + i, mask=m, other=0)
            HOLE
            tl.store(y_ptr + i, y, mask=m)
        """,
        """
        y = torch.empty(x.shape, dtype=torch.int64, device=x.device)
        n = x.numel()
        kernel[(triton.cdiv(n, 256),)](x, y, n, B=256)
        return y
        """,
    )
    problem = reference(of, "torch.randint(-100, 100, (1000,), dtype=torch.int32)")
    return probe("numerics", name, statement, topics, problem, template, wrong, right)


_LOAD = "x = tl.load(p, mask=m, other=0.0)\n"
_LOAD_LOW = 'x = tl.load(p, mask=m, other=float("-inf"))\n'

NUMERICS: tuple[Probe, ...] = (
    _rows(
        "softmax-minus-maximum",
        "Subtract the row's maximum before `tl.exp`: in float32 it overflows beyond 88, and "
        "softmax becomes inf / inf = NaN.",
        ("softmax", "tl.exp", "tl.max"),
        "torch.softmax(x, 1)",
        _LOAD_LOW + "e = tl.exp(x)\ny = e / tl.sum(e)",
        _LOAD_LOW + "e = tl.exp(x - tl.max(x))\ny = e / tl.sum(e)",
        inputs="60 * torch.randn(30, 100)",
        template=MAP_ROWS,
    ),
    _rows(
        "log-softmax-without-log-of-softmax",
        "Compute log-softmax as `x - max - log(sum(exp(x - max)))`: the logarithm of a softmax "
        "is -inf where that underflowed.",
        ("log_softmax", "cross_entropy", "tl.log"),
        "torch.log_softmax(x, 1)",
        _LOAD_LOW + "x = x - tl.max(x)\ne = tl.exp(x)\ny = tl.log(e / tl.sum(e))",
        _LOAD_LOW + "x = x - tl.max(x)\ny = x - tl.log(tl.sum(tl.exp(x)))",
        inputs="60 * torch.randn(30, 100)",
        template=MAP_ROWS,
    ),
    _rows(
        "fully-masked-row",
        "Where a whole row may be masked its maximum is -inf, and -inf - (-inf) is NaN: replace "
        "such a maximum, and a sum of zero, before they are used.",
        ("softmax", "attention", "masked_fill"),
        "torch.nan_to_num(torch.softmax(x.masked_fill(x < 1, float('-inf')), 1))",
        """
        x = tl.load(p, mask=m, other=0.0)
        x = tl.where(x < 1, float("-inf"), x)
        e = tl.exp(x - tl.max(x))
        y = e / tl.sum(e)
        """,
        """
        x = tl.load(p, mask=m, other=0.0)
        x = tl.where(x < 1, float("-inf"), x)
        high = tl.max(x)
        e = tl.exp(x - tl.where(high == float("-inf"), 0.0, high))
        total = tl.sum(e)
        y = e / tl.where(total == 0, 1.0, total)
        """,
        inputs="torch.randn(300, 3)",
        template=MAP_ROWS,
    ),
    _rows(
        "variance-in-two-steps",
        "Take the variance of `x - mean`, or Welford's way: E[x²] - E[x]² cancels where the mean "
        "is large against the spread.",
        ("var", "layer_norm", "batch_norm", "tl.sum"),
        "torch.var(x, 1, correction=0)",
        _LOAD + "mean = tl.sum(x) / columns\ny = tl.sum(x * x) / columns - mean * mean",
        _LOAD + "d = tl.where(m, x - tl.sum(x) / columns, 0.0)\ny = tl.sum(d * d) / columns",
        inputs="torch.randn(30, 100) + 1000",
    ),
    _rows(
        "mean-by-the-real-length",
        "Divide a mean by the number of elements, not by the length of the block, which is padded.",
        ("mean", "tl.sum"),
        "x.mean(1)",
        _LOAD + "y = tl.sum(x) / B",
        _LOAD + "y = tl.sum(x) / columns",
    ),
    _rows(
        "rsqrt-of-zero",
        "Add the epsilon before `tl.rsqrt`, or clamp: of a zero it is inf, and 0 * inf is NaN.",
        ("tl.rsqrt", "normalize", "rms_norm"),
        "x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6)",
        _LOAD + "y = x * tl.rsqrt(tl.sum(x * x) / columns) ",
        _LOAD + "y = x * tl.rsqrt(tl.sum(x * x) / columns + 1e-6)",
        inputs="torch.randn(30, 100) * (torch.arange(30)[:, None] % 3)",
        template=MAP_ROWS,
    ),
    _rows(
        "sum-halves-in-float32",
        "Convert float16 to float32 before `tl.sum`, which adds in its operand's dtype: squares "
        "overflow at 65504, and what is small gets lost.",
        ("float16", "tl.sum", "rms_norm"),
        "(x.float() * x.float()).sum(1)",
        _LOAD + "y = tl.sum(x * x)",
        _LOAD + "x = x.to(tl.float32)\ny = tl.sum(x * x)",
        inputs="torch.randn(30, 1000).half()",
    ),
    _rows(
        "accumulate-halves-in-float32",
        "Keep a running sum in float32: in float16 it overflows at 65504, and stops growing long "
        "before where what is added is small.",
        ("float16", "tl.zeros", "sum"),
        "x.float().sum(1)",
        """
        total = tl.zeros((B,), tl.float16)
        for start in range(0, columns, B):
            i = start + tl.arange(0, B)
            total += tl.load(p + i, mask=i < columns, other=0.0)
        tl.store(y_ptr + row, tl.sum(total.to(tl.float32)))
        """,
        """
        total = tl.zeros((B,), tl.float32)
        for start in range(0, columns, B):
            i = start + tl.arange(0, B)
            total += tl.load(p + i, mask=i < columns, other=0.0)
        tl.store(y_ptr + row, tl.sum(total.to(tl.float32)))
        """,
        inputs="2000 * torch.rand(16, 4000).half()",
        template=CHUNKS.replace("OUTPUT", "torch.empty(rows, device=x.device)"),
    ),
    _rows(
        "sum-integers-in-int64",
        "`tl.sum` of int32 wraps beyond 2³¹, while PyTorch adds integers in int64: convert first.",
        ("int32", "int64", "tl.sum"),
        "x.sum(1)",
        "x = tl.load(p, mask=m, other=0)\ny = tl.sum(x)",
        "x = tl.load(p, mask=m, other=0)\ny = tl.sum(x.to(tl.int64))",
        inputs="torch.randint(1 << 28, 1 << 30, (30, 100), dtype=torch.int32)",
        template=REDUCE_ROWS.replace("torch.empty(rows,", "torch.empty(rows, dtype=torch.int64,"),
    ),
    _matmul(
        "dot-in-ieee-where-float32-is-asked",
        "`tl.dot` of float32 rounds its operands to TF32, to some three digits, unless it has "
        '`input_precision="ieee"` or "tf32x3".',
        ("tl.dot", "float32", "matmul", "tf32"),
        "acc += tl.dot(a, b)",
        'acc += tl.dot(a, b, input_precision="ieee")',
    ),
    _matmul(
        "no-half-operands-for-float32",
        "Casting float32 operands to float16 for `tl.dot` keeps three digits and no number beyond "
        "65504, however the product is accumulated.",
        ("tl.dot", "float16", "matmul", ".to"),
        "acc += tl.dot(a.to(tl.float16), b.to(tl.float16))",
        'acc += tl.dot(a, b, input_precision="ieee")',
    ),
    _matmul(
        "accumulate-dots-in-float32",
        "Accumulate products of float16 in float32, the default of `tl.dot`: "
        "`out_dtype=tl.float16` rounds, and overflows, at every step.",
        ("tl.dot", "out_dtype", "float16", "matmul"),
        "acc += tl.dot(a, b, out_dtype=tl.float16)",
        "acc += tl.dot(a, b)",
        of=_HALF_PRODUCT,
    ),
    _map(
        "softplus-without-overflow",
        "Write `log(1 + exp(x))` as `max(x, 0) + log(1 + exp(-abs(x)))`: `tl.exp` of what is "
        "beyond 88 is inf.",
        ("softplus", "tl.exp", "tl.log", "mish"),
        "torch.nn.functional.softplus(x)",
        "y = tl.log(1 + tl.exp(x))",
        "y = tl.maximum(x, 0.0) + tl.log(1 + tl.exp(-tl.abs(x)))",
        "50 * torch.randn(1000)",
    ),
    _map(
        "tanh-without-overflow",
        "Compute tanh by `2 * tl.sigmoid(2 * x) - 1` or libdevice: (exp(2x) - 1) / (exp(2x) + 1) "
        "is inf / inf = NaN beyond 44.",
        ("tanh", "gelu", "tl.exp", "tl.sigmoid"),
        "torch.tanh(x)",
        "e = tl.exp(2 * x)\ny = (e - 1) / (e + 1)",
        "y = 2 * tl.sigmoid(2 * x) - 1",
        "20 * torch.randn(1000)",
    ),
    _map(
        "sigmoid-of-minus-x",
        "Compute a sigmoid as `1 / (1 + exp(-x))` or `tl.sigmoid`: exp(x) / (1 + exp(x)) is NaN "
        "where `tl.exp` overflows.",
        ("sigmoid", "silu", "tl.exp"),
        "torch.sigmoid(x)",
        "e = tl.exp(x)\ny = e / (1 + e)",
        "y = 1 / (1 + tl.exp(-x))",
        "50 * torch.randn(1000)",
    ),
    _map(
        "log1p-of-small-numbers",
        "`tl.log(1 + x)` loses a small x in the sum: use libdevice's `log1p`.",
        ("log1p", "tl.log", "libdevice"),
        "torch.log1p(x)",
        "y = tl.log(1 + x)",
        "y = tl.extra.cuda.libdevice.log1p(x)",
        "1e-5 * torch.rand(1000)",
    ),
    _map(
        "expm1-of-small-numbers",
        "`tl.exp(x) - 1` loses a small x to cancellation: use libdevice's `expm1`.",
        ("expm1", "elu", "tl.exp", "libdevice"),
        "torch.expm1(x)",
        "y = tl.exp(x) - 1",
        "y = tl.extra.cuda.libdevice.expm1(x)",
        "1e-5 * torch.rand(1000)",
    ),
    _map(
        "float-to-int-truncates",
        "`.to(tl.int32)` truncates towards zero: use `tl.floor` first where Python's or "
        "PyTorch's floor is meant.",
        (".to", "floor", "int32"),
        "x - torch.floor(x)",
        "y = x - x.to(tl.int32)",
        "y = x - tl.floor(x)",
        "10 * torch.randn(1000)",
    ),
    _map(
        "round-to-even-by-libdevice",
        "Adding 0.5 and taking the floor rounds halves up, PyTorch rounds them to even: use "
        "libdevice's `rint`.",
        ("round", "floor", "quantize", "libdevice"),
        "torch.round(torch.floor(x) / 2)",
        "y = tl.floor(tl.floor(x) / 2 + 0.5)",
        "y = tl.extra.cuda.libdevice.rint(tl.floor(x) / 2)",
        "10 * torch.randn(1000)",
    ),
    _integers(
        "integer-division-truncates",
        "`//` of integer blocks rounds towards zero as C does, Python and PyTorch downwards: "
        "correct the quotient of negative numbers.",
        ("//", "floor_divide", "int32"),
        "torch.div(x, 7, rounding_mode='floor').long()",
        "y = x // 7",
        "y = tl.where(x < 0, -((6 - x) // 7), x // 7)",
    ),
    _integers(
        "remainder-has-the-dividend-s-sign",
        "`%` of integer blocks has the sign of the dividend as in C, in Python and PyTorch that "
        "of the divisor: add the divisor to a negative one and take it again.",
        ("%", "remainder", "int32"),
        "torch.remainder(x, 7).long()",
        "y = x % 7",
        "y = (x % 7 + 7) % 7",
    ),
    _integers(
        "int32-products-wrap",
        "`tl.program_id`, `tl.arange` and small integer arguments are int32, and their products "
        "wrap beyond 2³¹: convert one factor with `.to(tl.int64)`, as for offsets into large "
        "tensors.",
        ("int32", "int64", "tl.arange", "tl.program_id"),
        "x.long() * 100_000_000",
        "y = x * 100_000_000",
        "y = x.to(tl.int64) * 100_000_000",
    ),
    probe(
        "numerics",
        "int8-products-wrap",
        "Arithmetic of two int8 blocks stays in int8 and wraps beyond 127: convert to int32 first.",
        ("int8", "int32", "quantize"),
        reference("x.int() * x.int()", "torch.randint(-100, 100, (1000,), dtype=torch.int8)"),
        program(
            """
            @triton.jit
            def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
                i = tl.program_id(0) * B + tl.arange(0, B)
                m = i < n
                x = tl.load(x_ptr + i, mask=m, other=0)
                HOLE
                tl.store(y_ptr + i, x * x, mask=m)
            """,
            """
            y = torch.empty(x.shape, dtype=torch.int32, device=x.device)
            n = x.numel()
            kernel[(triton.cdiv(n, 256),)](x, y, n, B=256)
            return y
            """,
        ),
        "",
        "x = x.to(tl.int32)",
    ),
)
