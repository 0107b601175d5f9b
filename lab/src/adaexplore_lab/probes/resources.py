"""Resources: what a block has room for."""

from __future__ import annotations

from adaexplore_lab.probes.base import Probe
from adaexplore_lab.probes.programs import matmul, probe, program, reference

_LARGE = reference(
    "a.float() @ b.float()",
    "torch.randn(128, 512).half(), torch.randn(512, 128).half()",
    args="a, b",
)
_STEP = "acc += tl.dot(a, b)"


def _matmul(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    wrong: str,
    right: str,
    *,
    launch: str = "HOLE",
    loop: str = "range(0, K, BK)",
) -> Probe:
    template = matmul(step=_STEP, launch=launch).replace("range(0, K, BK)", loop)
    return probe("resource", name, statement, topics, _LARGE, template, wrong, right)


RESOURCES: tuple[Probe, ...] = (
    _matmul(
        "tiles-fit-shared-memory",
        "The tiles of both operands of a pipelined `tl.dot`, times its stages, must fit the shared "
        "memory of a block, 227 KB on Hopper: 256 x 256 x 128 in float16 does not, 128 x 128 x 64 "
        "does.",
        ("tl.dot", "shared memory", "matmul", "float16"),
        "BM=256, BN=256, BK=128, num_warps=8",
        "BM=128, BN=128, BK=64, num_warps=8",
    ),
    _matmul(
        "stages-multiply-shared-memory",
        "Each of `num_stages` holds the operands' tiles once more: with large tiles take 2 to 4.",
        ("num_stages", "shared memory", "matmul", "tl.dot"),
        "BM=128, BN=128, BK=64, num_warps=8, num_stages=8",
        "BM=128, BN=128, BK=64, num_warps=8, num_stages=2",
    ),
    _matmul(
        "loop-stages-multiply-shared-memory",
        "`tl.range(..., num_stages=s)` overrides the launch's stages, and takes shared memory as "
        "they do.",
        ("tl.range", "num_stages", "shared memory"),
        "tl.range(0, K, BK, num_stages=8)",
        "tl.range(0, K, BK, num_stages=2)",
        launch="BM=128, BN=128, BK=64, num_warps=8",
        loop="HOLE",
    ),
    _matmul(
        "loop-over-the-depth",
        "Take the depth of a product in steps of 32 to 128: a block that holds all of it does "
        "not fit shared memory.",
        ("tl.dot", "shared memory", "matmul"),
        "BM=128, BN=128, BK=512",
        "BM=128, BN=128, BK=64",
    ),
    probe(
        "resource",
        "blocks-of-a-million-at-most",
        "A block has 1,048,576 elements at most, all axes together: take a larger tile in pieces.",
        ("tl.zeros", "tl.arange", "numel"),
        reference("2 * x", "torch.randn(4096, 2048)"),
        program(
            """
            @triton.jit
            def kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
                i = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
                j = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
                m = (i < M) & (j < N)
                tl.store(y_ptr + i * N + j, 2 * tl.load(x_ptr + i * N + j, mask=m), mask=m)
            """,
            """
            y = torch.empty_like(x)
            M, N = x.shape
            grid = lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))
            kernel[grid](x, y, M, N, HOLE)
            return y
            """,
        ),
        "BM=1024, BN=2048",
        "BM=16, BN=128",
    ),
    probe(
        "resource",
        "long-rows-in-pieces",
        "A row of more than 2²⁰ elements is no single block, however it is padded: loop over it, "
        "or let several programs share it.",
        ("triton.next_power_of_2", "tl.arange", "tl.sum"),
        reference("x.sum(1)", "torch.randn(4, 1500000)"),
        program(
            """
            @triton.jit
            def kernel(x_ptr, y_ptr, columns, B: tl.constexpr):
                row = tl.program_id(0)
                total = tl.zeros((B,), tl.float32)
                for start in range(0, columns, B):
                    i = start + tl.arange(0, B)
                    total += tl.load(x_ptr + row * columns + i, mask=i < columns, other=0.0)
                tl.store(y_ptr + row, tl.sum(total))
            """,
            """
            rows, columns = x.shape
            y = torch.empty(rows, device=x.device)
            kernel[(rows,)](x, y, columns, B=HOLE)
            return y
            """,
        ),
        "triton.next_power_of_2(columns)",
        "1024",
    ),
    probe(
        "resource",
        "no-product-by-broadcasting",
        "Do not multiply tiles as (M, K, 1) by (1, K, N) and sum: that block has M * K * N "
        "elements, over the limit of 2²⁰ soon; use `tl.dot`.",
        ("broadcast", "tl.dot", "tl.sum", "matmul"),
        _LARGE,
        matmul(step="HOLE", launch="BM=128, BN=256, BK=64, num_warps=8"),
        "acc += tl.sum(a[:, :, None] * b[None, :, :], axis=1)",
        _STEP,
    ),
    probe(
        "resource",
        "transpose-small-tiles",
        "`tl.trans` and other changes of layout pass a tile through shared memory: one of 256 x "
        "256 float32 does not fit, 64 x 64 does.",
        ("tl.trans", "shared memory", "transpose"),
        reference("x.t().contiguous()", "torch.randn(1024, 1024)"),
        program(
            """
            @triton.jit
            def kernel(x_ptr, y_ptr, M, N, B: tl.constexpr):
                i = tl.program_id(0) * B + tl.arange(0, B)
                j = tl.program_id(1) * B + tl.arange(0, B)
                m = (i[:, None] < M) & (j[None, :] < N)
                x = tl.load(x_ptr + i[:, None] * N + j[None, :], mask=m)
                n = (j[:, None] < N) & (i[None, :] < M)
                tl.store(y_ptr + j[:, None] * M + i[None, :], tl.trans(x), mask=n)
            """,
            """
            M, N = x.shape
            y = torch.empty(N, M, device=x.device)
            grid = lambda meta: (triton.cdiv(M, meta["B"]), triton.cdiv(N, meta["B"]))
            kernel[grid](x, y, M, N, B=HOLE, num_warps=8)
            return y
            """,
        ),
        "256",
        "64",
    ),
)
