"""Speed of what moves memory: rows, layouts, blocks, atomics and what a kernel computes with."""

from __future__ import annotations

import re

from adaexplore.memory.probes.base import Probe
from adaexplore.memory.probes.programs import MAP_ROWS, filled, program, reference


def _probe(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    problem: str,
    template: str,
    slow: str,
    fast: str,
) -> Probe:
    return Probe(
        name, "speed", statement, topics, problem, filled(template, slow), filled(template, fast)
    )


def _elementwise(
    kernel: str, *, launch: str = "B=1024", output: str = "torch.empty_like(x)"
) -> str:
    """`y` of the block `x` at the places `i`, under the mask `m`."""
    return program(
        f"""
        from triton.language.extra import libdevice


        @triton.jit
        def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
            i = tl.program_id(0) * B + tl.arange(0, B)
            m = i < n
            x = tl.load(x_ptr + i, mask=m)
            {kernel}
            tl.store(y_ptr + i, y, mask=m)
        """,
        f"""
        y = {output}
        n = x.numel()
        kernel[lambda meta: (triton.cdiv(n, meta["B"]),)](x, y, n, {launch})
        return y
        """,
    )


def _rows(kernel: str, grid: str, launch: str, *, memory: str, after: str = "return y") -> str:
    """A kernel on the pointers of x and y with the shape of x."""
    body = re.sub(r"\n{2,}", "\n", kernel.strip("\n"))
    return program(
        f"@triton.jit\ndef kernel(x_ptr, y_ptr, rows, columns, B: tl.constexpr):\n{body}",
        f"""
        columns = x.shape[-1]
        rows = x.numel() // columns
        y = {memory}
        kernel[{grid}](x, y, rows, columns, {launch})
        {after}
        """,
    )


_WIDE = "torch.randn(4096, 4096)"
_SOFTMAX = reference("torch.softmax(x, 1)", _WIDE)
_LONG = reference("torch.softmax(x, 1)", "torch.randn(256, 65536)")
_SILU = reference("x * torch.sigmoid(x)", "torch.randn(16777216)")
_TANH = reference("torch.tanh(x)", "torch.randn(33554432).half()")
_RMS = reference(
    "x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)", "torch.randn(64, 1024, 256)"
)

_MAXIMUM = """
    top = tl.full((B,), float("-inf"), tl.float32)
    for start in range(0, columns, B):
        x = tl.load(p + start, mask=start + i < columns, other=float("-inf"))
        top = tl.maximum(top, x)
    top = tl.max(top, axis=0)
"""
_TOTAL = """
    total = tl.zeros((B,), tl.float32)
    for start in range(0, columns, B):
        x = tl.load(p + start, mask=start + i < columns, other=float("-inf"))
        total += tl.exp(x - top)
    total = tl.sum(total, axis=0)
"""
_BOTH = """
    tops = tl.full((B,), float("-inf"), tl.float32)
    totals = tl.zeros((B,), tl.float32)
    for start in range(0, columns, B):
        x = tl.load(p + start, mask=start + i < columns, other=float("-inf"))
        new = tl.maximum(tops, x)
        known = new > float("-inf")
        totals = tl.where(known, totals * tl.exp(tops - new) + tl.exp(x - new), 0.0)
        tops = new
    top = tl.max(tops, axis=0)
    total = tl.sum(totals * tl.exp(tops - top), axis=0)
"""
_DIVIDED = """
    for start in range(0, columns, B):
        x = tl.load(p + start, mask=start + i < columns)
        q = y_ptr + row * columns + start + i
        tl.store(q, tl.exp(x - top) / total, mask=start + i < columns)
"""
_ROW = """
    row = tl.program_id(0)
    i = tl.arange(0, B)
    p = x_ptr + row * columns + i
"""


def _softmax(*passes: str, launch: str) -> str:
    kernel = "".join((_ROW, *passes))
    return _rows(kernel, "(rows,)", launch, memory="torch.empty_like(x)")


_WHOLE_ROW = """
x = tl.load(p, mask=m, other=float("-inf"))
e = tl.exp(x - tl.max(x, axis=0))
y = e / tl.sum(e, axis=0)
"""
_MANY_ROWS = """
    r = tl.program_id(0) * HOLE + tl.arange(0, HOLE)[:, None]
    i = tl.arange(0, B)[None, :]
    m = (r < rows) & (i < columns)
    x = tl.load(x_ptr + r * columns + i, mask=m, other=0.0)
    tl.store(y_ptr + r, tl.sum(x, axis=1, keep_dims=True), mask=r < rows)
"""
_COLUMN = """
    column = tl.program_id(0)
    total = tl.zeros((B,), tl.float32)
    for start in range(0, rows, B):
        r = start + tl.arange(0, B)
        total += tl.load(x_ptr + r * columns + column, mask=r < rows, other=0.0)
    tl.store(y_ptr + column, tl.sum(total, axis=0))
"""
_COLUMNS = """
    c = tl.program_id(0) * B + tl.arange(0, B)[None, :]
    total = tl.zeros((64, B), tl.float32)
    for start in range(0, rows, 64):
        r = start + tl.arange(0, 64)[:, None]
        m = (r < rows) & (c < columns)
        total += tl.load(x_ptr + r * columns + c, mask=m, other=0.0)
    tl.store(y_ptr + c, tl.sum(total, axis=0, keep_dims=True), mask=c < columns)
"""
_PART_OF_ROW = """
    row, part = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for start in HOLE:
        total += tl.load(x_ptr + row * columns + start + i, mask=start + i < columns, other=0.0)
    tl.store(y_ptr + row * tl.num_programs(1) + part, tl.sum(total, axis=0))
"""
_BY_LINES = """
    row = tl.program_id(0)
    i = tl.program_id(1) * B + tl.arange(0, B)
    x = tl.load(x_ptr + row * columns + i, mask=i < columns)
    tl.store(y_ptr + i * rows + row, 2 * x, mask=i < columns)
"""
_BY_TILES = """
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    m = (r[:, None] < rows) & (c[None, :] < columns)
    x = tl.load(x_ptr + r[:, None] * columns + c[None, :], mask=m)
    m = (c[:, None] < columns) & (r[None, :] < rows)
    tl.store(y_ptr + c[:, None] * rows + r[None, :], tl.trans(2 * x), mask=m)
"""
_TURNED = "torch.empty(columns, rows, device=x.device)"
_PLANES = program(
    """
    @triton.jit
    def kernel(x_ptr, bias_ptr, y_ptr, n, plane, channels, B: tl.constexpr):
        HOLE
        channel = i // plane % channels
        y = tl.load(x_ptr + i, mask=i < n) + tl.load(bias_ptr + channel, mask=i < n)
        tl.store(y_ptr + i, y, mask=i < n)
    """,
    """
    y = torch.empty_like(x)
    n, plane = x.numel(), x.shape[2] * x.shape[3]
    kernel[(triton.cdiv(n, 1024),)](x, bias, y, n, plane, x.shape[1], B=1024)
    return y
    """,
    args="x, bias",
)
_BINS = program(
    """
    @triton.jit
    def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        x = tl.load(x_ptr + i, mask=i < n, other=0)
        HOLE
    """,
    """
    y = torch.zeros(256, dtype=torch.int32, device=x.device)
    n = x.numel()
    kernel[(triton.cdiv(n, 8192),)](x, y, n, B=8192)
    return y
    """,
)
_FILTER = program(
    """
    @triton.jit
    def kernel(x_ptr, w_ptr, y_ptr, columns, out, TAPS: tl.constexpr, B: tl.constexpr):
        row = tl.program_id(1)
        i = tl.program_id(0) * B + tl.arange(0, B)
        y = tl.zeros((B,), tl.float32)
        for tap in HOLE(TAPS):
            x = tl.load(x_ptr + row * columns + i + tap, mask=i < out, other=0.0)
            y += x * tl.load(w_ptr + tap)
        tl.store(y_ptr + row * out + i, y, mask=i < out)
    """,
    """
    rows, columns = x.shape
    taps = w.numel()
    out = columns - taps + 1
    y = torch.empty(rows, out, device=x.device)
    kernel[(triton.cdiv(out, 1024), rows)](x, w, y, columns, out, TAPS=taps, B=1024)
    return y
    """,
    args="x, w",
)
_NORM = """
    mean = tl.zeros((B,), tl.float32)
    square = tl.zeros((B,), tl.float32)
    for start in range(0, columns, B):
        x = tl.load(p + start, mask=start + i < columns, other=0.0FIRST)
        mean += x
        square += x * x
    mean = tl.sum(mean, axis=0) / columns
    scale = tl.rsqrt(tl.sum(square, axis=0) / columns - mean * mean + 1e-5)
    for start in range(0, columns, B):
        x = tl.load(p + start, mask=start + i < columnsSECOND)
        q = y_ptr + row * columns + start + i
        tl.store(q, (x - mean) * scale, mask=start + i < columns)
"""


def _norm(first: str, second: str) -> str:
    kernel = _ROW + _NORM.replace("FIRST", first).replace("SECOND", second)
    return _rows(kernel, "(rows,)", "B=4096, num_warps=8", memory="torch.empty_like(x)")


_ATTENTION = program(
    """
    @triton.jit
    def kernel(
        q_ptr, k_ptr, v_ptr, y_ptr, T, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
    ):
        head = tl.program_id(1) * T * D
        i = tl.program_id(0) * BM + tl.arange(0, BM)
        d = tl.arange(0, D)
        m = i[:, None] < T
        q = tl.load(q_ptr + head + i[:, None] * D + d[None, :], mask=m, other=0.0)
        top = tl.full((BM,), float("-inf"), tl.float32)
        total = tl.zeros((BM,), tl.float32)
        acc = tl.zeros((BM, D), tl.float32)
        for start in range(0, T, BN):
            j = start + tl.arange(0, BN)
            k = tl.load(k_ptr + head + j[None, :] * D + d[:, None], mask=j[None, :] < T, other=0.0)
            v = tl.load(v_ptr + head + j[:, None] * D + d[None, :], mask=j[:, None] < T, other=0.0)
            s = tl.where(j[None, :] < T, tl.dot(q, k) * scale, float("-inf"))
            new = tl.maximum(top, tl.max(s, axis=1))
            p = tl.EXP(s - new[:, None])
            shrink = tl.EXP(top - new)
            total = total * shrink + tl.sum(p, axis=1)
            acc = tl.dot(p.to(tl.float16), v, acc * shrink[:, None])
            top = new
        y = (acc / total[:, None]).to(tl.float16)
        tl.store(y_ptr + head + i[:, None] * D + d[None, :], y, mask=m)
    """,
    """
    heads, T, D = q.shape
    y = torch.empty_like(q)
    grid = (triton.cdiv(T, 128), heads)
    kernel[grid](q, k, v, y, T, SCALE, BM=128, BN=64, D=D, num_warps=8, num_stages=3)
    return y
    """,
    args="q, k, v",
)
_HEADS = ", ".join(["torch.randn(64, 1024, 64).half()"] * 3)

ROWS: tuple[Probe, ...] = (
    Probe(
        "a-row-in-one-block",
        "speed",
        "Hold a row of up to some 16k elements in one block, and read it once: softmax and norms "
        "that loop over it for the maximum, the sum and the result read it three times.",
        ("softmax", "layer_norm", "rms_norm", "tl.max"),
        _SOFTMAX,
        _softmax(_MAXIMUM, _TOTAL, _DIVIDED, launch="B=1024"),
        filled(MAP_ROWS, _WHOLE_ROW),
    ),
    Probe(
        "online-softmax-for-long-rows",
        "speed",
        "For rows that no block holds take maximum and sum of a softmax in one loop, scaling the "
        "sum by `exp(old - new)` where the maximum grows: two passes over memory in place of "
        "three.",
        ("softmax", "logsumexp", "cross_entropy"),
        _LONG,
        _softmax(_MAXIMUM, _TOTAL, _DIVIDED, launch="B=4096, num_warps=8"),
        _softmax(_BOTH, _DIVIDED, launch="B=4096, num_warps=8"),
    ),
    _probe(
        "several-short-rows-a-program",
        "Give a program 32 or more rows where they are short (64 elements): as a block of two "
        "axes, reduced over the second. A program for each row leaves threads idle and costs a "
        "start.",
        ("tl.sum", "sum", "mean", "softmax"),
        reference("x.sum(-1)", "torch.randn(64, 64, 64, 64)"),
        _rows(
            _MANY_ROWS,
            "(triton.cdiv(rows, HOLE),)",
            "B=triton.next_power_of_2(columns)",
            memory="torch.empty(x.shape[:-1], device=x.device)",
        ),
        "1",
        "32",
    ),
    Probe(
        "few-long-rows-in-parts",
        "speed",
        "Reduce a few long rows in parts, with a second grid axis over the parts of a row, and the "
        "partial results in a second step: a program a row keeps most multiprocessors idle.",
        ("tl.sum", "sum", "mean", "tl.max"),
        reference("x.sum(1)", "torch.randn(16, 1048576)"),
        *(
            _rows(
                _PART_OF_ROW.replace("HOLE", loop),
                f"(rows, {parts})",
                "B=4096",
                memory=f"torch.empty(rows, {parts}, device=x.device)",
                after="return y.sum(1)",
            )
            for loop, parts in (
                ("range(0, columns, B)", 1),
                ("range(part * B, columns, tl.num_programs(1) * B)", 64),
            )
        ),
    ),
    Probe(
        "neighbours-along-the-contiguous-axis",
        "speed",
        "Let the last axis of a block run along contiguous memory, also where the sum is over the "
        "other one: tiles of 64 rows x 64 columns. A block down one column takes 32 bytes from "
        "memory for each 4.",
        ("tl.sum", "sum", "mean", "stride"),
        reference("x.sum(0)", "torch.randn(1024, 16384)"),
        _rows(
            _COLUMN,
            "(columns,)",
            "B=1024",
            memory="torch.empty(columns, device=x.device)",
        ),
        _rows(
            _COLUMNS,
            "(triton.cdiv(columns, 64),)",
            "B=64",
            memory="torch.empty(columns, device=x.device)",
        ),
    ),
    Probe(
        "transpose-in-tiles",
        "speed",
        "Transpose by tiles of 64 x 64: load with the input's last axis contiguous, `tl.trans`, "
        "store with the output's. Storing a row as a column writes 32 bytes for each 4.",
        ("transpose", "permute", "tl.trans", "contiguous"),
        reference("(2 * x).t().contiguous()", _WIDE),
        _rows(_BY_LINES, "(rows, triton.cdiv(columns, 1024))", "B=1024", memory=_TURNED),
        _rows(
            _BY_TILES,
            "(triton.cdiv(rows, 64), triton.cdiv(columns, 64))",
            "B=64",
            memory=_TURNED,
        ),
    ),
    _probe(
        "blocks-of-a-thousand-elements",
        "Give an elementwise program 1024 elements or more, 8 for each thread of 4 warps: a block "
        "of 64 leaves threads idle, and needs 16 times the programs.",
        ("tl.arange", "BLOCK_SIZE", "elementwise"),
        _SILU,
        _elementwise("y = x * tl.sigmoid(x)", launch="B=HOLE"),
        "64",
        "1024",
    ),
    _probe(
        "few-warps-for-small-blocks",
        "Take few warps for a small block: one for a row of 256 elements. With 8 most of a "
        "reduction is exchange between warps through shared memory.",
        ("num_warps", "rms_norm", "layer_norm", "softmax"),
        _RMS,
        program(
            """
            @triton.jit
            def kernel(x_ptr, y_ptr, rows, columns, B: tl.constexpr):
                row = tl.program_id(0)
                i = tl.arange(0, B)
                x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=0.0)
                y = x * tl.rsqrt(tl.sum(x * x, axis=0) / columns + 1e-5)
                tl.store(y_ptr + row * columns + i, y, mask=i < columns)
            """,
            """
            columns = x.shape[-1]
            rows = x.numel() // columns
            y = torch.empty_like(x)
            B = triton.next_power_of_2(columns)
            kernel[(rows,)](x, y, rows, columns, B=B, num_warps=HOLE)
            return y
            """,
        ),
        "8",
        "1",
    ),
    _probe(
        "offsets-in-32-bits",
        "Keep offsets in int32 where a tensor has less than 2**31 elements, or cast the start of a "
        "block alone: division and `%` of int64 blocks take tens of instructions for each element.",
        ("int64", "tl.int64", "//", "%"),
        reference(
            "x + bias[:, None, None]",
            "torch.randn(16, 64, 128, 128), torch.randn(64)",
            args="x, bias",
        ),
        _PLANES,
        "i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)",
        "i = tl.program_id(0) * B + tl.arange(0, B)",
    ),
    _probe(
        "counts-in-blocks-before-atomics",
        "Count a block by `tl.histogram` and add its bins atomically, one operation a bin: an "
        "atomic for each element has all programs wait for the same few addresses.",
        ("tl.atomic_add", "tl.histogram", "bincount", "histc"),
        reference(
            "torch.zeros(256, dtype=x.dtype, device=x.device).index_add(0, x, torch.ones_like(x))",
            "torch.randint(0, 256, (4194304,), dtype=torch.int32)",
        ),
        _BINS,
        "tl.atomic_add(y_ptr + x, 1, mask=i < n)",
        """
        counts = tl.histogram(x, 256, mask=i < n)
        tl.atomic_add(y_ptr + tl.arange(0, 256), counts)
        """,
    ),
    Probe(
        "sum-in-a-block-before-atomics",
        "speed",
        "Sum in a block what goes to one address, then add it atomically once: 128 rows at a time, "
        "not a row.",
        ("tl.atomic_add", "sum", "scatter_add"),
        reference("x.sum((0, 1))", "torch.randn(128, 1024, 256)"),
        *(
            _rows(
                f"""
    r = tl.program_id(0) * {height} + tl.arange(0, {height})[:, None]
    c = tl.arange(0, B)[None, :]
    m = (r < rows) & (c < columns)
    x = tl.load(x_ptr + r * columns + c, mask=m, other=0.0)
    tl.atomic_add(y_ptr + c, tl.sum(x, axis=0, keep_dims=True), mask=c < columns)
""",
                f"(triton.cdiv(rows, {height}),)",
                "B=triton.next_power_of_2(columns), num_warps=8",
                memory="torch.zeros(columns, device=x.device)",
            )
            for height in (1, 128)
        ),
    ),
    _probe(
        "unroll-short-loops",
        "Unroll a loop of a few constant steps with `tl.static_range`: the loads of all its steps "
        "are under way at once, where `range` may wait for each.",
        ("tl.static_range", "conv1d", "tl.range"),
        reference(
            "F.conv1d(x[:, None], w[None, None])[:, 0]",
            "torch.randn(64, 262144), torch.randn(8)",
            args="x, w",
        ),
        _FILTER,
        "range",
        "tl.static_range",
    ),
    _probe(
        "stages-for-loops-over-memory",
        "Give a loop that only loads and adds `tl.range(..., num_stages=4)`: loads of later steps "
        "are under way while one is added, which a launch's num_stages does for `tl.dot` alone.",
        ("tl.range", "num_stages", "tl.sum", "sum"),
        reference("x.sum(1)", "torch.randn(512, 32768)"),
        _rows(
            """
    row = tl.program_id(0)
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for start in tl.range(0, columns, B, num_stages=HOLE):
        total += tl.load(x_ptr + row * columns + start + i, mask=start + i < columns, other=0.0)
    tl.store(y_ptr + row, tl.sum(total, axis=0))
""",
            "(rows,)",
            "B=1024",
            memory="torch.empty(rows, device=x.device)",
        ),
        "1",
        "4",
    ),
    Probe(
        "evict-last-what-is-read-again",
        "speed",
        'Where a row is read twice, load it with `eviction_policy="evict_last"` at first and '
        '"evict_first" then, so that the caches keep it in between.',
        ("eviction_policy", "layer_norm", "softmax"),
        reference("F.layer_norm(x, (32768,))", "torch.randn(512, 32768)").replace(
            "(32768,)", "x.shape[1:]"
        ),
        _norm("", ""),
        _norm(', eviction_policy="evict_last"', ', eviction_policy="evict_first"'),
    ),
    _probe(
        "tanh-by-exponentials",
        "In half precision compute tanh(x) as `2 * tl.sigmoid(2 * x) - 1` in float32: "
        "`libdevice.tanh` is exact to the last bits of float32 and takes several times the work.",
        ("tanh", "libdevice.tanh", "gelu"),
        _TANH,
        _elementwise("HOLE"),
        "y = libdevice.tanh(x.to(tl.float32)).to(tl.float16)",
        "y = (2 * tl.sigmoid(2 * x.to(tl.float32)) - 1).to(tl.float16)",
    ),
    Probe(
        "exp2-in-attention",
        "speed",
        "In attention fold log2(e) into the scale of the scores and use `tl.exp2`: `tl.exp` "
        "multiplies each score by it once more.",
        ("attention", "tl.exp", "tl.exp2", "softmax"),
        reference("F.scaled_dot_product_attention(q, k, v)", _HEADS, args="q, k, v"),
        _ATTENTION.replace("EXP", "exp").replace("SCALE", "D**-0.5"),
        _ATTENTION.replace("EXP", "exp2").replace("SCALE", "D**-0.5 * 1.4426950408889634"),
    ),
)
