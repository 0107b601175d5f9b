"""What the notes on Triton say of the hardware, on a GPU."""

import pytest
import torch

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

from on_gpu import DEVICE  # noqa: E402  # isort: skip

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("shared_gpu")]
WINDOW, HOP, ROWS = 64, 4, 32


@triton.jit
def sums_of_windows(x_desc, out_ptr, n, rows: tl.constexpr):
    row = tl.program_id(0) * rows
    at = row + tl.arange(0, rows)
    window = x_desc.load([row, 0]).to(tl.float32)
    tl.store(out_ptr + at, tl.sum(window, axis=1), mask=at < n)


@triton.jit
def copy_with_prefetch(x_ptr, out_ptr, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    ahead = x_ptr + (at + block) % n
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;",
        "=r,l",
        [ahead],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_of_a_tensor_descriptor_may_overlap(dtype):
    hop = HOP * 4 // dtype.itemsize
    x = torch.randn(4096 * hop + WINDOW, device=DEVICE).to(dtype)
    windows = x.unfold(0, WINDOW, hop)
    n = len(windows)
    out = torch.empty(n, device=DEVICE)
    desc = TensorDescriptor(x, [n, WINDOW], [hop, 1], [ROWS, WINDOW])
    sums_of_windows[(triton.cdiv(n, ROWS),)](desc, out, n, rows=ROWS)
    torch.testing.assert_close(out, windows.float().sum(1), rtol=1e-4, atol=1e-3)


def test_ptx_prefetches_into_the_l2_cache():
    x = torch.randn(1 << 20, device=DEVICE)
    out = torch.empty_like(x)
    compiled = copy_with_prefetch[(x.numel() // 1024,)](x, out, x.numel(), block=1024)
    assert torch.equal(out, x)
    assert "prefetch.global.L2" in compiled.asm["ptx"]
