"""What compiles and gives a wrong answer: masks, strides, tails, and stores that meet."""

from __future__ import annotations

from adaexplore_lab.probes.base import Probe
from adaexplore_lab.probes.programs import (
    CHUNKS,
    MAP_ROWS,
    REDUCE_ROWS,
    matmul,
    probe,
    program,
    reference,
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
    return probe("silent", name, statement, topics, problem, template, wrong, right)


_MAP = """
@triton.jit
def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(y_ptr + i, 2 * tl.load(x_ptr + i, mask=m), mask=m)
"""


def _host(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    wrong: str,
    right: str,
    *,
    of: str = "2 * x",
    inputs: str = "torch.randn(30, 100).t()",
    before: str = "x = x.contiguous()\ny = torch.empty_like(x)",
    grid: str = "triton.cdiv(n, 64)",
    after: str = "return y",
) -> Probe:
    """Two ways to call a kernel that doubles what is contiguous."""
    forward = f"{before}\nn = x.numel()\nkernel[({grid},)](x, y, n, B=64)\n{after}"
    template = program(_MAP, forward)
    return probe("silent", name, statement, topics, reference(of, inputs), template, wrong, right)


_MATRIX = program(
    """
    @triton.jit
    def kernel(x_ptr, w_ptr, y_ptr, M, N, B: tl.constexpr):
        PIDS
        i = pm * B + tl.arange(0, B)[:, None]
        j = pn * B + tl.arange(0, B)[None, :]
        m = (i < M) & (j < N)
        x = tl.load(x_ptr + i * N + j, mask=m, other=0.0)
        OPERATION
    """,
    """
    M, N = x.shape
    y = OUTPUT
    kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](x, WEIGHT, y, M, N, B=16)
    return y
    """,
)


def _matrix(
    *,
    pids: str = "pm, pn = tl.program_id(0), tl.program_id(1)",
    operation: str = "tl.store(y_ptr + i * N + j, 2 * x, mask=m)",
    output: str = "torch.empty_like(x)",
    weight: str = "x",
    args: str = "x",
) -> str:
    template = _MATRIX.replace("PIDS", pids).replace("OUTPUT", output).replace("WEIGHT", weight)
    return template.replace("OPERATION", operation).replace("self, x)", f"self, {args})")


def _sum_of_all(store: str, output: str) -> str:
    """The sum of x over several programs."""
    return program(
        f"""
        @triton.jit
        def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
            i = tl.program_id(0) * B + tl.arange(0, B)
            total = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0))
            {store}
        """,
        f"""
        y = {output}
        n = x.numel()
        kernel[(triton.cdiv(n, 64),)](x, y, n, B=64)
        return y
        """,
    )


def _chunks(output: str = "torch.empty(rows, device=x.device)") -> str:
    return CHUNKS.replace("OUTPUT", output)


_LINEAR = reference("F.linear(a, b)", "torch.randn(40, 50), torch.randn(50, 50)", args="a, b")
_MASKED_DEPTH = matmul(offset="n * K + kn", columns="b.shape[0]")

SILENT: tuple[Probe, ...] = (
    _rows(
        "mask-the-row-not-the-tensor",
        "Mask a row's block by the row's length: a bound on the whole tensor lets the padded "
        "lanes read the next row.",
        ("tl.load", "mask", "tl.sum"),
        "x.sum(1)",
        "x = tl.load(p, mask=row * columns + i < tl.num_programs(0) * columns, other=0.0)\n"
        "y = tl.sum(x)",
        "x = tl.load(p, mask=m, other=0.0)\ny = tl.sum(x)",
    ),
    _rows(
        "bounds-are-exclusive",
        "The last place of n is n - 1: a mask with `<=` takes one element too many, from "
        "whatever lies behind.",
        ("mask", "tl.load", "<="),
        "x[:, :-1].sum(1)",
        "x = tl.load(p, mask=i <= columns - 1, other=0.0)\ny = tl.sum(x)",
        "x = tl.load(p, mask=i < columns - 1, other=0.0)\ny = tl.sum(x)",
    ),
    _rows(
        "identity-of-max",
        'Load with `other=float("-inf")` for `tl.max`: lanes of 0 win over negative numbers.',
        ("tl.max", "tl.load", "other", "amax"),
        "x.amax(1)",
        "y = tl.max(tl.load(p, mask=m, other=0.0))",
        'y = tl.max(tl.load(p, mask=m, other=float("-inf")))',
        inputs="-torch.rand(30, 100)",
    ),
    _rows(
        "identity-of-min",
        'Load with `other=float("inf")` for `tl.min`: padded lanes of 0 win over positive numbers.',
        ("tl.min", "tl.load", "other", "amin"),
        "x.amin(1)",
        "y = tl.min(tl.load(p, mask=m, other=0.0))",
        'y = tl.min(tl.load(p, mask=m, other=float("inf")))',
        inputs="torch.rand(30, 100)",
    ),
    _rows(
        "identity-of-a-product",
        "Load with `other=1.0` for a product: one padded lane of 0 makes it 0.",
        ("tl.reduce", "prod", "other"),
        "x.prod(1)",
        "y = tl.reduce(tl.load(p, mask=m, other=0.0), 0, multiply)",
        "y = tl.reduce(tl.load(p, mask=m, other=1.0), 0, multiply)",
        inputs="1 + torch.rand(30, 25) / 10",
        template=REDUCE_ROWS.replace(
            "@triton.jit\n", "@triton.jit\ndef multiply(a, b):\n    return a * b\n\n\n@triton.jit\n"
        ),
    ),
    _rows(
        "identity-of-argmax",
        'Load with `other=float("-inf")` for `tl.argmax`: else the index of a padded lane comes '
        "out, beyond the row.",
        ("tl.argmax", "argmax", "other"),
        "x.argmax(1)",
        "y = tl.argmax(tl.load(p, mask=m, other=0.0), 0)",
        'y = tl.argmax(tl.load(p, mask=m, other=float("-inf")), 0)',
        inputs="-1 - torch.rand(30, 100)",
        template=REDUCE_ROWS.replace("torch.empty(rows,", "torch.empty(rows, dtype=torch.int64,"),
    ),
    _rows(
        "softmax-pads-with-minus-infinity",
        'Load with `other=float("-inf")` for a softmax, so that padded lanes add exp(-inf) = 0; '
        "those of 0 add to the sum.",
        ("softmax", "tl.exp", "other"),
        "torch.softmax(x, 1)",
        "x = tl.load(p, mask=m, other=0.0)\ne = tl.exp(x - tl.max(x))\ny = e / tl.sum(e)",
        'x = tl.load(p, mask=m, other=float("-inf"))\ne = tl.exp(x - tl.max(x))\ny = e / tl.sum(e)',
        template=MAP_ROWS,
    ),
    _rows(
        "mask-again-after-arithmetic",
        "Padded lanes of 0 are 0 no longer once something was subtracted: mask `x - mean` with "
        "`tl.where` before it is squared and summed.",
        ("tl.where", "var", "layer_norm", "tl.sum"),
        "torch.var(x, 1, correction=0)",
        """
        x = tl.load(p, mask=m, other=0.0)
        d = x - tl.sum(x) / columns
        y = tl.sum(d * d) / columns
        """,
        """
        x = tl.load(p, mask=m, other=0.0)
        d = tl.where(m, x - tl.sum(x) / columns, 0.0)
        y = tl.sum(d * d) / columns
        """,
        inputs="torch.randn(30, 100) + 3",
    ),
    probe(
        "silent",
        "mask-the-store-to-its-row",
        "Mask the store of a padded row by the row's length: else its tail overwrites the "
        "beginning of another row, whichever comes last.",
        ("tl.store", "mask", "flip"),
        reference("torch.flip(x, (0,))", "torch.randn(30, 100)"),
        program(
            """
            @triton.jit
            def kernel(x_ptr, y_ptr, rows, columns, B: tl.constexpr):
                row = tl.program_id(0)
                i = tl.arange(0, B)
                x = tl.load(x_ptr + row * columns + i, mask=i < columns)
                j = (rows - 1 - row) * columns + i
                tl.store(y_ptr + j, x, mask=HOLE)
            """,
            """
            y = torch.empty_like(x)
            rows, columns = x.shape
            kernel[(rows,)](x, y, rows, columns, B=triton.next_power_of_2(columns))
            return y
            """,
        ),
        "j < rows * columns",
        "i < columns",
    ),
    _host(
        "contiguous-before-flat-offsets",
        "Offsets that count elements in a row want contiguous tensors: call `.contiguous()`, or "
        "pass and use the strides, as transposed and sliced inputs have others.",
        ("contiguous", "stride", "transpose"),
        "y = torch.empty(x.shape, device=x.device)",
        "x = x.contiguous()\ny = torch.empty(x.shape, device=x.device)",
        before="HOLE",
    ),
    _host(
        "empty-like-keeps-strides",
        "`torch.empty_like` copies the strides of a transposed tensor: allocate the output by "
        "`torch.empty(x.shape)` where the kernel writes row after row.",
        ("empty_like", "stride", "transpose"),
        "y = torch.empty_like(x)",
        "y = torch.empty(x.shape, dtype=x.dtype, device=x.device)",
        before="HOLE\nx = x.contiguous()",
    ),
    _host(
        "output-dtype-is-given",
        "`torch.empty(shape)` is float32 whatever the input is: pass `dtype=x.dtype`, as an "
        "output of another dtype is wrong.",
        ("torch.empty", "dtype", "float16"),
        "y = torch.empty(x.shape, device=x.device)",
        "y = torch.empty(x.shape, device=x.device, dtype=x.dtype)",
        inputs="torch.randn(1000).half()",
        before="HOLE",
    ),
    _host(
        "do-not-write-into-the-input",
        "Store results in a tensor of their own: a kernel that writes through a pointer to an "
        "input changes it for the caller.",
        ("tl.store", "inplace", "empty_like"),
        "y = x",
        "y = torch.empty_like(x)",
        inputs="torch.randn(1000)",
        before="HOLE",
    ),
    _host(
        "grid-rounds-up",
        "Start `triton.cdiv(n, B)` programs: `n // B` leaves out the last block of what B does not "
        "divide.",
        ("grid", "triton.cdiv", "//"),
        "n // 64",
        "triton.cdiv(n, 64)",
        inputs="torch.randn(1000)",
        grid="HOLE",
    ),
    _rows(
        "loop-rounds-up",
        "Loop over `range(0, n, B)` with a mask, or to `tl.cdiv(n, B)`: `n // B` steps leave out "
        "the tail.",
        ("range", "tl.cdiv", "sum"),
        "x.sum(1)",
        """
        total = tl.zeros((B,), tl.float32)
        for step in range(columns // B):
            i = step * B + tl.arange(0, B)
            total += tl.load(p + i, mask=i < columns, other=0.0)
        tl.store(y_ptr + row, tl.sum(total))
        """,
        """
        total = tl.zeros((B,), tl.float32)
        for step in range(tl.cdiv(columns, B)):
            i = step * B + tl.arange(0, B)
            total += tl.load(p + i, mask=i < columns, other=0.0)
        tl.store(y_ptr + row, tl.sum(total))
        """,
        template=_chunks(),
    ),
    _rows(
        "argmax-of-chunks-adds-the-offset",
        "`tl.argmax` counts from the start of its block: add where the block starts in the row.",
        ("tl.argmax", "argmax", "range"),
        "x.argmax(1)",
        """
        best, at = float("-inf"), 0
        for start in range(0, columns, B):
            i = start + tl.arange(0, B)
            x = tl.load(p + i, mask=i < columns, other=float("-inf"))
            high = tl.max(x)
            at = tl.where(high > best, tl.argmax(x, 0), at)
            best = tl.maximum(high, best)
        tl.store(y_ptr + row, at)
        """,
        """
        best, at = float("-inf"), 0
        for start in range(0, columns, B):
            i = start + tl.arange(0, B)
            x = tl.load(p + i, mask=i < columns, other=float("-inf"))
            high = tl.max(x)
            at = tl.where(high > best, start + tl.argmax(x, 0), at)
            best = tl.maximum(high, best)
        tl.store(y_ptr + row, at)
        """,
        template=_chunks("torch.empty(rows, dtype=torch.int64, device=x.device)"),
    ),
    _rows(
        "scan-carries-between-chunks",
        "`tl.cumsum` begins anew in every block: add the sum of the blocks before.",
        ("tl.cumsum", "cumsum", "tl.associative_scan"),
        "x.cumsum(1)",
        """
        for start in range(0, columns, B):
            i = start + tl.arange(0, B)
            x = tl.load(p + i, mask=i < columns, other=0.0)
            tl.store(y_ptr + row * columns + i, tl.cumsum(x, 0), mask=i < columns)
        """,
        """
        before = 0.0
        for start in range(0, columns, B):
            i = start + tl.arange(0, B)
            x = tl.load(p + i, mask=i < columns, other=0.0)
            tl.store(y_ptr + row * columns + i, before + tl.cumsum(x, 0), mask=i < columns)
            before += tl.sum(x)
        """,
        template=_chunks("torch.empty_like(x)"),
    ),
    _rows(
        "online-softmax-rescales",
        "When a running maximum grows, multiply the sum so far by exp(old - new): what was added "
        "belongs to the old one.",
        ("logsumexp", "softmax", "attention", "tl.exp"),
        "torch.logsumexp(x, 1)",
        """
        high, total = float("-inf"), 0.0
        for start in range(0, columns, B):
            i = start + tl.arange(0, B)
            x = tl.load(p + i, mask=i < columns, other=float("-inf"))
            new = tl.maximum(high, tl.max(x))
            total = total + tl.sum(tl.exp(x - new))
            high = new
        tl.store(y_ptr + row, high + tl.log(total))
        """,
        """
        high, total = float("-inf"), 0.0
        for start in range(0, columns, B):
            i = start + tl.arange(0, B)
            x = tl.load(p + i, mask=i < columns, other=float("-inf"))
            new = tl.maximum(high, tl.max(x))
            total = total * tl.exp(high - new) + tl.sum(tl.exp(x - new))
            high = new
        tl.store(y_ptr + row, high + tl.log(total))
        """,
        template=_chunks(),
    ),
    probe(
        "silent",
        "atomic-where-programs-meet",
        "Where several programs add to one place use `tl.atomic_add`: of plain stores the last one "
        "stays.",
        ("tl.atomic_add", "tl.store", "sum"),
        reference("x.sum()", "torch.randn(1000)"),
        _sum_of_all("HOLE", "torch.zeros((), device=x.device)"),
        "tl.store(y_ptr, total)",
        "tl.atomic_add(y_ptr, total)",
    ),
    probe(
        "silent",
        "zeros-before-atomic-add",
        "Allocate with `torch.zeros` what `tl.atomic_add` adds to: `torch.empty` holds whatever "
        "was there.",
        ("tl.atomic_add", "torch.empty", "torch.zeros"),
        reference("x.sum()", "torch.randn(1000)"),
        _sum_of_all("tl.atomic_add(y_ptr, total)", "HOLE"),
        "torch.empty((), device=x.device)",
        "torch.zeros((), device=x.device)",
    ),
    probe(
        "silent",
        "max-of-atomics-starts-low",
        "Fill with -inf what `tl.atomic_max` compares with: over zeros, negative ones are lost.",
        ("tl.atomic_max", "torch.zeros", "torch.full"),
        reference("x.amax()", "-1 - torch.rand(1000)"),
        program(
            """
            @triton.jit
            def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
                i = tl.program_id(0) * B + tl.arange(0, B)
                x = tl.load(x_ptr + i, mask=i < n, other=float("-inf"))
                tl.atomic_max(y_ptr, tl.max(x))
            """,
            """
            y = HOLE
            n = x.numel()
            kernel[(triton.cdiv(n, 64),)](x, y, n, B=64)
            return y
            """,
        ),
        "torch.zeros((), device=x.device)",
        'torch.full((), float("-inf"), device=x.device)',
    ),
    probe(
        "silent",
        "program-ids-as-in-the-grid",
        "`tl.program_id(a)` runs over axis a of the grid: swapped, programs compute blocks that "
        "do not exist and leave out others.",
        ("tl.program_id", "grid"),
        reference("2 * x", "torch.randn(30, 100)"),
        _matrix(pids="HOLE"),
        "pn, pm = tl.program_id(0), tl.program_id(1)",
        "pm, pn = tl.program_id(0), tl.program_id(1)",
    ),
    probe(
        "silent",
        "bias-along-columns",
        "A bias for columns is indexed by the column's block, shape (1, N): by the row's, shape "
        "(M, 1), it broadcasts too, and is wrong.",
        ("broadcast", "bias", "linear", "[None, :]"),
        reference("x + w", "torch.randn(50, 50), torch.randn(50)", args="x, w"),
        _matrix(
            operation="w = tl.load(w_ptr + HOLE, mask=m)\n"
            "    tl.store(y_ptr + i * N + j, x + w, mask=m)",
            weight="w",
            args="x, w",
        ),
        "i + 0 * j",
        "j + 0 * i",
    ),
    probe(
        "silent",
        "reshape-is-no-transposition",
        "`tl.reshape` keeps the row-major order of elements: to swap axes use `tl.trans`.",
        ("tl.reshape", "tl.trans", "transpose"),
        reference("x.t().contiguous()", "torch.randn(48, 80)"),
        _matrix(
            operation="i, j = tl.program_id(0) * B + tl.arange(0, B), "
            "tl.program_id(1) * B + tl.arange(0, B)\n"
            "    tl.store(y_ptr + j[:, None] * M + i[None, :], HOLE, "
            "mask=(j[:, None] < N) & (i[None, :] < M))",
            output="torch.empty(N, M, device=x.device)",
        ),
        "tl.reshape(x, (B, B))",
        "tl.trans(x)",
    ),
    probe(
        "silent",
        "linear-weight-is-out-by-in",
        "The weight of `nn.Linear` has shape (out, in): element (k, n) of the product's right "
        "side lies at `n * K + k`, not `k * N + n`.",
        ("linear", "tl.dot", "stride", "matmul"),
        _LINEAR,
        matmul(offset="HOLE", columns="b.shape[0]"),
        "kn * N + n",
        "n * K + kn",
    ),
    Probe(
        name="mask-the-depth-of-a-product",
        kind="silent",
        statement="Mask the depth of both operands of a `tl.dot` with `other=0.0`: else the next "
        "row's elements take part in the sum where it is no multiple of the block.",
        topics=("tl.dot", "mask", "matmul", "other"),
        reference=_LINEAR,
        witness=_MASKED_DEPTH.replace("(m < M) & (km < K)", "m * K + km < M * K").replace(
            "(kn < K) & (n < N)", "n * K + kn < N * K"
        ),
        remedy=_MASKED_DEPTH,
    ),
    probe(
        "silent",
        "dot-adds-only-when-told",
        "`tl.dot(a, b)` is the product of two blocks: add it up with `acc +=`, or pass `acc`; an "
        "assignment keeps the last block's.",
        ("tl.dot", "acc", "matmul"),
        reference("a @ b", "torch.randn(40, 50), torch.randn(50, 24)", args="a, b"),
        matmul(step="HOLE"),
        'acc = tl.dot(a, b, input_precision="ieee")',
        'acc = tl.dot(a, b, acc, input_precision="ieee")',
    ),
)
