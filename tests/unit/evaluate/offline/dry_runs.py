"""Launches a few kernels and prints the work that a dry run finds in each, as JSON.

A script, since what it installs would stay in the process of the tests.
"""

import json
from dataclasses import asdict

import torch
import triton
import triton.language as tl

from adaexplore.evaluate.kernels import driver
from adaexplore.evaluate.kernels.capture import Recorder
from adaexplore.evaluate.kernels.targets import TARGETS
from adaexplore.evaluate.offline.estimate import DryRuns
from adaexplore.evaluate.offline.interpreter import Interpreter


@triton.jit
def add(x, y, out, n, stride, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    tl.store(out + at, tl.load(x + at * stride, inside) + tl.load(y + at, inside), inside)


@triton.jit
def matmul(a, b, c, m, n, k, precision: tl.constexpr, block: tl.constexpr):
    rows = tl.program_id(0) * block + tl.arange(0, block)
    columns = tl.program_id(1) * block + tl.arange(0, block)
    total = tl.zeros((block, block), tl.float32)
    for start in range(0, k, block):
        depth = start + tl.arange(0, block)
        left = tl.load(a + rows[:, None] * k + depth)
        right = tl.load(b + depth[:, None] * n + columns)
        total = tl.dot(left, right, total, input_precision=precision)
    tl.store(c + rows[:, None] * n + columns, total)


@triton.jit
def histogram(x, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.atomic_add(out + tl.load(x + at, at < n), 1.0, at < n)


@triton.jit
def slow(x, out, n, block: tl.constexpr):
    total = tl.zeros((block,), tl.float32)
    for start in range(0, n, block):
        total += tl.load(x + start + tl.arange(0, block))
    tl.store(out + tl.arange(0, block), total)


def main() -> None:
    driver.install(TARGETS["sm_90"])
    found = {}
    runs = DryRuns(Interpreter(), 30.0)
    last = []
    Recorder(last.append).install()

    def note(name: str) -> None:
        found[name] = asdict(runs.work(last[-1]))

    n = 100_000
    x, y, out = torch.empty(8 * n), torch.empty(n), torch.empty(n)
    for name, stride, block in (("add", 1, 1024), ("one by one", 1, 8), ("strided", 8, 1024)):
        add[(triton.cdiv(n, block),)](x, y, out, n, stride, block)
        note(name)
    add[(triton.cdiv(n, 1024),)](x[1:], y[:-1], out[1:], n - 1, 1, 1024)
    note("shifted")
    for dtype, precision in (
        (torch.float32, "ieee"),
        (torch.float32, "tf32"),
        (torch.float32, "tf32x3"),
        (torch.float16, "ieee"),
    ):
        a, b, c = torch.empty(256, 512, dtype=dtype), torch.empty(512, 128, dtype=dtype), None
        c = torch.empty(256, 128)
        matmul[(4, 2)](a, b, c, 256, 128, 512, precision, 64)
        note(f"matmul {str(dtype).partition('.')[2]} {precision}")
    ids, counts = torch.empty(4096, dtype=torch.int32), torch.empty(64)
    histogram[(4,)](ids, counts, 4096, 1024)
    note("histogram")
    runs = DryRuns(Interpreter(), 0.5)
    slow[(8,)](torch.empty(1 << 20), torch.empty(16), 1 << 20, 16)
    note("slow")
    slow[(8,)](torch.empty(1 << 10), torch.empty(16), 1 << 10, 16)
    note("not slow")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
