"""Speed of products: tiles, pipelines, precisions and where the operands lie."""

from __future__ import annotations

import re

from adaexplore_lab.probes.base import Probe
from adaexplore_lab.probes.programs import filled, program, reference

_LAUNCH = "BM=128, BN=128, BK=64, num_warps=4, num_stages=3"
_GRID = '(triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))'
_TILE = "m, n = tl.program_id(0), tl.program_id(1)"
_LOADS = """
a = tl.load(a_ptr + m * lda + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
b = tl.load(b_ptr + k[:, None] * sbk + n * sbn, mask=(k[:, None] < K) & (n < N), other=0.0)
"""
_STORE = "tl.store(c_ptr + m * N + n, acc.to(tl.float16), mask=(m < M) & (n < N))"
_MEMORY = "c = torch.empty(M, N, device=a.device, dtype=a.dtype)"


def _inputs(m: int, n: int, k: int) -> str:
    return f"torch.randn({m}, {k}).half(), torch.randn({k}, {n}).half()"


_HALF = reference("a @ b", _inputs(2048, 2048, 2048), args="a, b")
_FLAT = reference("a @ b", _inputs(4096, 4096, 512), args="a, b")
_LARGE = reference("a @ b", _inputs(2048, 8192, 4096), args="a, b")
_DEEP = reference("a @ b", _inputs(64, 128, 16384), args="a, b")
_ODD = reference("a @ b", _inputs(2048, 2048, 2047), args="a, b")
_FLOAT = reference("a @ b", "torch.randn(1024, 1024), torch.randn(1024, 1024)", args="a, b")
_TURNED = reference("a @ b.t()", _inputs(2048, 2048, 2048), args="a, b")
_BIASED = reference(
    "torch.relu(a @ b + bias)",
    _inputs(2048, 2048, 2048) + ", torch.randn(2048).half()",
    args="a, b, bias",
)


def _matmul(
    *,
    parameters: str = "",
    tile: str = _TILE,
    loop: str = "range(0, K, BK)",
    loads: str = _LOADS,
    step: str = "acc = tl.dot(a, b, acc)",
    store: str = _STORE,
    before: str = "",
    memory: str = _MEMORY,
    grid: str = _GRID,
    arguments: str = "a, b, c, M, N, K, a.stride(0), b.stride(0), b.stride(1)",
    launch: str = _LAUNCH,
    after: str = "return c",
    args: str = "a, b",
    more: str = "",
) -> str:
    """A product of a and b in tiles; every part of it may be another."""
    template = program(
        f"""
        @triton.jit
        def kernel(
            a_ptr, b_ptr, c_ptr, M, N, K, lda, sbk, sbn{parameters},
            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
        ):
            TILE
            m = m * BM + tl.arange(0, BM)[:, None]
            n = n * BN + tl.arange(0, BN)[None, :]
            acc = tl.zeros((BM, BN), tl.float32)
            for start in {loop}:
                k = start + tl.arange(0, BK)
                LOADS
                {step}
            STORE
        """
        + more,
        f"""
        BEFORE
        M, K = a.shape
        N = b.shape[1]
        {memory}
        kernel[lambda meta: {grid}]({arguments}, {launch})
        AFTER
        """,
        args=args,
    )
    parts = {"TILE": tile, "LOADS": loads, "STORE": store, "BEFORE": before, "AFTER": after}
    for hole, text in parts.items():
        template = re.sub(rf"(?m)^( +){hole}$", r"\1HOLE" if text else "", template)
        template = filled(template, text)
    return template


def _probe(
    name: str, statement: str, topics: tuple[str, ...], problem: str, slow: str, fast: str
) -> Probe:
    return Probe(name, "speed", statement, ("tl.dot", *topics), problem, slow, fast)


_GROUPED = """
pid = tl.program_id(0)
rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
first = pid // (8 * columns) * 8
size = min(rows - first, 8)
m = first + pid % (8 * columns) % size
n = pid % (8 * columns) // size
"""
_BY_ROWS = """
pid = tl.program_id(0)
m, n = pid // tl.cdiv(N, BN), pid % tl.cdiv(N, BN)
"""
_ONE_AXIS = '(triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)'

_DESCRIPTORS = program(
    """
    from triton.tools.tensor_descriptor import TensorDescriptor


    @triton.jit
    def kernel(a, b, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in HOLE:
            acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
        m = row + tl.arange(0, BM)[:, None]
        n = column + tl.arange(0, BN)[None, :]
        tl.store(c_ptr + m * N + n, acc.to(tl.float16), mask=(m < M) & (n < N))
    """,
    """
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty(M, N, device=a.device, dtype=a.dtype)
    BM, BN, BK = 128, 128, 64
    a = TensorDescriptor.from_tensor(a, [BM, BK])
    b = TensorDescriptor.from_tensor(b, [BK, BN])
    grid = (triton.cdiv(M, BM), triton.cdiv(N, BN))
    kernel[grid](a, b, c, M, N, K, BM=BM, BN=BN, BK=BK, num_warps=4, num_stages=3)
    return c
    """,
    args="a, b",
)
_WITH_EIGHT_WARPS = _DESCRIPTORS.replace("num_warps=4", "num_warps=8")
_DEPTH = "range(0, K, BK)"

_PERSISTENT = """
@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in TILES:
        m = tile // columns * BM + tl.arange(0, BM)[:, None]
        n = tile % columns * BN + tl.arange(0, BN)[None, :]
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            a = tl.load(a_ptr + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
            b = tl.load(b_ptr + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + m * N + n, acc.to(tl.float16), mask=(m < M) & (n < N))
"""
_PERSISTENT_HOST = f"""
M, K = a.shape
N = b.shape[1]
{_MEMORY}
tiles = triton.cdiv(M, 128) * triton.cdiv(N, 128)
kernel[(PROGRAMS,)](a, b, c, M, N, K, {_LAUNCH})
return c
"""


def _persistent(tiles: str, programs: str) -> str:
    kernel = _PERSISTENT.replace("TILES", tiles)
    return program(kernel, _PERSISTENT_HOST.replace("PROGRAMS", programs), args="a, b")


_SPLIT = """
part = tl.program_id(2)
m, n = tl.program_id(0), tl.program_id(1)
"""
_EPILOGUE = "tl.store(c_ptr + m * N + n, VALUE.to(tl.float16), mask=(m < M) & (n < N))"
_SECOND_KERNEL = """

        @triton.jit
        def activate(c_ptr, bias_ptr, total, N, B: tl.constexpr):
            i = tl.program_id(0) * B + tl.arange(0, B)
            bias = tl.load(bias_ptr + i % N, mask=i < total)
            c = tl.load(c_ptr + i, mask=i < total)
            tl.store(c_ptr + i, tl.maximum(c + bias, 0.0), mask=i < total)
"""

MATMULS: tuple[Probe, ...] = (
    _probe(
        "tiles-of-128-for-products",
        "For a large half-precision product take tiles of 128 x 128 (64 deep): each element that "
        "is loaded is used 128 times. Tiles of 32 x 32 keep tensor cores waiting for memory.",
        ("matmul", "BLOCK_SIZE", "num_warps"),
        _HALF,
        _matmul(launch="BM=32, BN=32, BK=64, num_warps=4, num_stages=3"),
        _matmul(),
    ),
    _probe(
        "stages-hide-loads-of-products",
        "Give a loop of `tl.dot` over tiles `num_stages=3` or 4: tiles are loaded while others are "
        "multiplied. With 1 every step waits for its own loads.",
        ("num_stages", "matmul"),
        _HALF,
        _matmul(launch=_LAUNCH.replace("num_stages=3", "num_stages=1")),
        _matmul(),
    ),
    _probe(
        "eight-warps-for-tiles-of-256",
        "A float32 accumulator of 128 x 256 needs num_warps=8: with 4 it is 256 registers a "
        "thread, which spill.",
        ("num_warps", "matmul"),
        _HALF,
        _matmul(launch="BM=128, BN=256, BK=64, num_warps=4, num_stages=3"),
        _matmul(launch="BM=128, BN=256, BK=64, num_warps=8, num_stages=3"),
    ),
    _probe(
        "steps-of-64-in-half-precision",
        "Take 64 elements of depth in each step of a half-precision product: rows of 128 bytes in "
        "shared memory. Steps of 16 have four times the loads, barriers and waits.",
        ("BLOCK_K", "matmul"),
        _HALF,
        _matmul(launch=_LAUNCH.replace("BK=64", "BK=16")),
        _matmul(),
    ),
    _probe(
        "half-operands-stay-half",
        "Give `tl.dot` float16 or bfloat16 operands as they were loaded: it adds up in float32 "
        "anyway. With `.to(tl.float32)` before it they run at TF32's half speed and take twice the "
        "room.",
        ("tl.float16", "tl.bfloat16", "float16", "bfloat16", "half"),
        _HALF,
        _matmul(step="acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc)"),
        _matmul(),
    ),
    _probe(
        "grouped-order-of-tiles",
        "Where an operand does not fit the L2 cache, have neighbouring programs take a group of 8 "
        "rows of tiles column by column: row after row, each wave of programs reads all of the "
        "other operand.",
        ("matmul", "program_id", "tl.program_id"),
        _LARGE,
        _matmul(tile=_BY_ROWS, grid=_ONE_AXIS),
        _matmul(tile=_GROUPED, grid=_ONE_AXIS),
    ),
    _probe(
        "descriptors-instead-of-pointers",
        "Load the tiles of a product through `TensorDescriptor` (TMA): one thread asks for a whole "
        "tile, bounds are checked by hardware, and no registers go into pointers and masks.",
        ("tma", "TensorDescriptor", "make_tensor_descriptor", "matmul"),
        _HALF,
        _matmul(),
        filled(_DESCRIPTORS, _DEPTH),
    ),
    _probe(
        "warp-specialized-loop",
        "With tensor descriptors try `tl.range(..., warp_specialize=True)` on the loop over the "
        "depth: some warps load while others multiply.",
        ("warp_specialize", "TensorDescriptor", "make_tensor_descriptor"),
        _HALF,
        filled(_WITH_EIGHT_WARPS, _DEPTH),
        filled(_WITH_EIGHT_WARPS, "tl.range(0, K, BK, warp_specialize=True)"),
    ),
    _probe(
        "persistent-programs-for-short-depth",
        "For a product with many tiles and a short depth start one program a multiprocessor that "
        "loops over tiles: starting a program for each costs as much as its few steps.",
        ("persistent", "multi_processor_count", "matmul"),
        _FLAT,
        _persistent("range(tl.program_id(0), tl.program_id(0) + 1)", "tiles"),
        _persistent(
            "tl.range(tl.program_id(0), rows * columns, tl.num_programs(0), flatten=True)",
            'min(tiles, torch.cuda.get_device_properties("cuda").multi_processor_count)',
        ),
    ),
    _probe(
        "no-masks-where-tiles-divide",
        "Where the sizes are multiples of the tile, which a check on the host makes sure of, load "
        "and store without masks.",
        ("mask", "matmul"),
        _HALF,
        _matmul(),
        _matmul(
            before="assert a.shape[0] % 128 == b.shape[1] % 128 == a.shape[1] % 64 == 0",
            loads="""
            a = tl.load(a_ptr + m * lda + k[None, :])
            b = tl.load(b_ptr + k[:, None] * sbk + n * sbn)
            """,
            store="tl.store(c_ptr + m * N + n, acc.to(tl.float16))",
        ),
    ),
    _probe(
        "split-the-depth-of-skinny-products",
        "A product with few output tiles and a long depth leaves most multiprocessors idle: split "
        "the depth over a third grid axis into float32 partial products, and add those up.",
        ("split_k", "matmul", "linear"),
        _DEEP,
        _matmul(launch="BM=64, BN=64, BK=64, num_warps=4, num_stages=3"),
        _matmul(
            tile=_SPLIT,
            loop="range(part * BK, K, tl.num_programs(2) * BK)",
            store="tl.store(c_ptr + part * M * N + m * N + n, acc, mask=(m < M) & (n < N))",
            memory="c = torch.empty(64, M, N, device=a.device)",
            grid=_GRID.replace("))", "), 64)"),
            launch="BM=64, BN=64, BK=64, num_warps=4, num_stages=3",
            after="return c.sum(0).to(a.dtype)",
        ),
    ),
    _probe(
        "pad-rows-of-odd-length",
        "Half-precision rows whose length is no multiple of 8 are loaded element by element: pad "
        "the depth of a product to a multiple of 16 by zeros (of weights once, in the "
        "constructor).",
        ("stride", "F.pad", "matmul", "linear"),
        _ODD,
        _matmul(),
        _matmul(
            before="""
            more = -a.shape[1] % 16
            a, b = nn.functional.pad(a, (0, more)), nn.functional.pad(b, (0, 0, 0, more))
            """
        ),
    ),
    _probe(
        "transposed-operands-by-their-strides",
        "Read a transposed operand through its strides, each axis times its own: `tl.dot` takes "
        "it as it lies. `.t().contiguous()` writes and reads all of it once more.",
        ("contiguous", "transpose", "stride", "tl.trans", "linear"),
        _TURNED,
        _matmul(before="b = b.t().contiguous()"),
        _matmul(before="b = b.t()"),
    ),
    _probe(
        "tf32x3-for-float32-products",
        'For float32 products in full precision use `tl.dot(a, b, input_precision="tf32x3")`: '
        'three products on tensor cores. "ieee" multiplies without them.',
        ("input_precision", "allow_tf32", "matmul", "linear"),
        _FLOAT,
        *(
            _matmul(
                step=f'acc = tl.dot(a, b, acc, input_precision="{precision}")',
                store="tl.store(c_ptr + m * N + n, acc, mask=(m < M) & (n < N))",
                launch="BM=64, BN=64, BK=32, num_warps=4, num_stages=3",
            )
            for precision in ("ieee", "tf32x3")
        ),
    ),
    _probe(
        "bias-and-activation-in-the-product",
        "Add the bias and apply the activation to the accumulator before it is stored: a kernel of "
        "its own reads and writes the whole output again.",
        ("relu", "gelu", "bias", "linear", "matmul"),
        _BIASED,
        _matmul(
            args="a, b, bias",
            after="""
            activate[(triton.cdiv(M * N, 1024),)](c, bias, M * N, N, B=1024)
            return c
            """,
            more=_SECOND_KERNEL,
        ),
        _matmul(
            args="a, b, bias",
            parameters=", bias_ptr",
            arguments="a, b, c, M, N, K, a.stride(0), b.stride(0), b.stride(1), bias",
            store="""
            acc += tl.load(bias_ptr + n, mask=n < N)
            tl.store(c_ptr + m * N + n, tl.maximum(acc, 0.0).to(tl.float16), mask=(m < M) & (n < N))
            """,
        ),
    ),
)
