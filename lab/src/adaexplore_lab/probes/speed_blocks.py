"""Speed of what a block computes: its size, its offsets, its loops, its functions."""

from __future__ import annotations

from adaexplore_lab.probes.base import Probe
from adaexplore_lab.probes.programs import probe, program, reference


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


_SILU = reference("x * torch.sigmoid(x)", "torch.randn(4096, 4096)")
_TANH = reference("torch.tanh(x)", "torch.randn(33554432).half()")
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

BLOCKS: tuple[Probe, ...] = (
    probe(
        "speed",
        "blocks-of-a-thousand-elements",
        "Give an elementwise program 1024 elements or more, 8 for each thread of 4 warps: a block "
        "of 64 leaves threads idle, and needs 16 times the programs.",
        ("tl.arange", "BLOCK_SIZE", "elementwise"),
        _SILU,
        _elementwise("y = x * tl.sigmoid(x)", launch="B=HOLE"),
        "64",
        "1024",
    ),
    probe(
        "speed",
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
    probe(
        "speed",
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
    probe(
        "speed",
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
    probe(
        "speed",
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
