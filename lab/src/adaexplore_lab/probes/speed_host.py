"""Speed of what is around kernels: launches, memory, and what a constructor can do once."""

from __future__ import annotations

from adaexplore_lab.probes.base import Probe
from adaexplore_lab.probes.programs import filled, program, reference

_SILU = """
@triton.jit
def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * tl.sigmoid(x), mask=i < n)
"""
_PREPARED = program(
    """
    @triton.jit
    def kernel(x_ptr, scale_ptr, shift_ptr, y_ptr, n, plane, channels, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        c = i // plane % channels
        x = tl.load(x_ptr + i, mask=i < n)
        scale = tl.load(scale_ptr + c, mask=i < n)
        shift = tl.load(shift_ptr + c, mask=i < n)
        tl.store(y_ptr + i, x * scale + shift, mask=i < n)
    """,
    """
    CALL
    y = torch.empty_like(x)
    n, plane = x.numel(), x.shape[2] * x.shape[3]
    kernel[(triton.cdiv(n, 1024),)](x, scale, shift, y, n, plane, x.shape[1], B=1024)
    return y
    """,
    setup="SETUP",
)
_NORM_SETUP = """\
self.mean = nn.Parameter(torch.randn(64))
        self.var = nn.Parameter(torch.rand(64) + 0.5)
        self.weight = nn.Parameter(torch.randn(64))
        self.bias = nn.Parameter(torch.randn(64))"""
_FOLD = """\
scale = self.weight * torch.rsqrt(self.var + 1e-5)
        shift = self.bias - self.mean * scale"""
_KEEP = """
        self.register_buffer("scale", scale.detach())
        self.register_buffer("shift", shift.detach())"""
_RESIDUAL = """
@triton.jit
def norm(x_ptr, r_ptr, y_ptr, columns, ADD: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < columns
    x = tl.load(x_ptr + row * columns + i, mask=m, other=0.0)
    if ADD:
        x += tl.load(r_ptr + row * columns + i, mask=m, other=0.0)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) / columns + 1e-5)
    tl.store(y_ptr + row * columns + i, y, mask=m)


@triton.jit
def add(x_ptr, r_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=m) + tl.load(r_ptr + i, mask=m), mask=m)
"""


def _residual(call: str) -> str:
    host = f"""
    rows, columns = x.shape
    y = torch.empty_like(x)
    B = triton.next_power_of_2(columns)
    {call}
    return y
    """
    return program(_RESIDUAL, host, args="x, r")


_LAUNCHES = program(
    _SILU,
    """
    y = torch.empty_like(x)
    HOLE
    return y
    """,
)
_ALLOCATED = program(
    _SILU,
    """
    y = torch.HOLE(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, y, n, B=1024)
    return y
    """,
)

HOST: tuple[Probe, ...] = (
    Probe(
        "empty-not-zeros-for-outputs",
        "speed",
        "Allocate with `torch.empty` what the kernel writes whole: `torch.zeros` is a kernel more, "
        "which writes all of it before.",
        ("torch.zeros", "torch.zeros_like", "torch.empty_like"),
        reference("x * torch.sigmoid(x)", "torch.randn(16777216)"),
        filled(_ALLOCATED, "zeros_like"),
        filled(_ALLOCATED, "empty_like"),
    ),
    Probe(
        "one-launch-for-a-batch",
        "speed",
        "Launch one kernel with a grid axis over the batch, not one kernel for each item from a "
        "loop in `forward`: a launch takes the host microseconds, and a small kernel fills no "
        "GPU.",
        ("for", "grid", "tl.program_id"),
        reference("x * torch.sigmoid(x)", "torch.randn(32, 65536)"),
        filled(
            _LAUNCHES,
            """
            for item, out in zip(x, y):
                n = item.numel()
                kernel[(triton.cdiv(n, 1024),)](item, out, n, B=1024)
            """,
        ),
        filled(
            _LAUNCHES,
            """
            n = x.numel()
            kernel[(triton.cdiv(n, 1024),)](x, y, n, B=1024)
            """,
        ),
    ),
    Probe(
        "one-kernel-for-a-chain",
        "speed",
        "Do in one kernel what follows elementwise on a load or before a store: an addition in a "
        "kernel of its own writes its result to memory, and the next one reads it back.",
        ("add", "residual", "rms_norm", "layer_norm"),
        reference(
            "(x + r) * torch.rsqrt((x + r).square().mean(1, keepdim=True) + 1e-5)",
            "torch.randn(8192, 2048), torch.randn(8192, 2048)",
            args="x, r",
        ),
        _residual(
            "total, n = torch.empty_like(x), x.numel()\n"
            "    add[(triton.cdiv(n, 1024),)](x, r, total, n, B=1024)\n"
            "    norm[(rows,)](total, r, y, columns, ADD=False, B=B)"
        ),
        _residual("norm[(rows,)](x, r, y, columns, ADD=True, B=B)"),
    ),
    Probe(
        "constants-in-the-constructor",
        "speed",
        "Compute in the constructor, and keep as buffers, what depends on weights alone (a folded "
        "norm, a transposed or packed weight): in `forward` each small operation is a launch.",
        ("register_buffer", "batch_norm", "nn.Parameter", "weight"),
        reference(
            "(x - self.mean[:, None, None]) * torch.rsqrt(self.var + 1e-5)[:, None, None] * "
            "self.weight[:, None, None] + self.bias[:, None, None]",
            "torch.randn(8, 64, 64, 64)",
            setup=_NORM_SETUP,
        ),
        _PREPARED.replace("SETUP", _NORM_SETUP).replace("CALL", _FOLD),
        _PREPARED.replace("SETUP", f"{_NORM_SETUP}\n        {_FOLD}{_KEEP}").replace(
            "CALL", "scale, shift = self.scale, self.shift"
        ),
    ),
)
