"""Speed of what goes over rows: softmaxes, norms, sums over either axis, transposes."""

from __future__ import annotations

import re

from adaexplore_lab.probes.base import Probe
from adaexplore_lab.probes.programs import MAP_ROWS, filled, probe, program, reference


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


def _in_parts(loop: str, parts: int) -> str:
    return _rows(
        _PART_OF_ROW.replace("HOLE", loop),
        f"(rows, {parts})",
        "B=4096",
        memory=f"torch.empty(rows, {parts}, device=x.device)",
        after="return y.sum(1)",
    )


_ADDED = """
    r = tl.program_id(0) * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    c = tl.arange(0, B)[None, :]
    m = (r < rows) & (c < columns)
    x = tl.load(x_ptr + r * columns + c, mask=m, other=0.0)
    tl.atomic_add(y_ptr + c, tl.sum(x, axis=0, keep_dims=True), mask=c < columns)
"""


def _added(height: int) -> str:
    return _rows(
        _ADDED.replace("HEIGHT", str(height)),
        f"(triton.cdiv(rows, {height}),)",
        "B=triton.next_power_of_2(columns), num_warps=8",
        memory="torch.zeros(columns, device=x.device)",
    )


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
        "sum by `tl.exp` of what the maximum grew by, negative: two passes over memory in place "
        "of three.",
        ("softmax", "logsumexp", "cross_entropy"),
        _LONG,
        _softmax(_MAXIMUM, _TOTAL, _DIVIDED, launch="B=4096, num_warps=8"),
        _softmax(_BOTH, _DIVIDED, launch="B=4096, num_warps=8"),
    ),
    probe(
        "speed",
        "several-short-rows-a-program",
        "Give a program 32 or more rows where they are short (128 elements): as a block of two "
        "axes, reduced over the second. A program for each row leaves threads idle and costs a "
        "start.",
        ("tl.sum", "sum", "mean", "softmax"),
        reference("x.sum(-1)", "torch.randn(32, 64, 64, 128)"),
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
        _in_parts("range(0, columns, B)", 1),
        _in_parts("range(part * B, columns, tl.num_programs(1) * B)", 64),
    ),
    Probe(
        "neighbours-along-the-contiguous-axis",
        "speed",
        "Let the last axis of a block run along contiguous memory, also where the sum is over the "
        "other one: tiles of 64 rows x 32 columns. A block down one column takes 32 bytes from "
        "memory for each 4.",
        ("tl.sum", "sum", "mean", "stride"),
        reference("x.sum(0)", "torch.randn(2048, 8192)"),
        _rows(
            _COLUMN,
            "(columns,)",
            "B=1024",
            memory="torch.empty(columns, device=x.device)",
        ),
        _rows(
            _COLUMNS,
            "(triton.cdiv(columns, 32),)",
            "B=32",
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
    probe(
        "speed",
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
    Probe(
        "sum-in-a-block-before-atomics",
        "speed",
        "Sum in a block what goes to one address, then add it atomically once: 128 rows at a time, "
        "not 4.",
        ("tl.atomic_add", "sum", "scatter_add"),
        reference("x.sum((0, 1))", "torch.randn(32, 512, 256)"),
        _added(4),
        _added(128),
    ),
    probe(
        "speed",
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
)
