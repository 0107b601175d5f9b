"""Time and error of fp32 products on tensor cores, in Triton, beside the library's strict fp32.

    python lab/benchmarks/emulated_products.py --out emulated.json

Rows times columns over a long axis, standard normal. "fp16x3" are three products of fp16 parts
that are split before; `slab` is the length of the partial sums that an accumulator of the tensor
cores holds before it is added to the running sum by ordinary additions, 0 for all. The error is
relative, by norm, against float64.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from triton.testing import do_bench

_ROWS, _COLUMNS, _LENGTH = 1024, 8192, 8192
_TILES = ((128, 128, 64, 3, 8), (128, 128, 32, 4, 8))
_Tiles = tuple[int, int, int, int, int]
_SCALE = 2.0**9  # so that low parts are no denormals, and none exceeds 65504
_SLABS = (0, 64, 128, 256)


@triton.jit  # type: ignore[untyped-decorator]
def _places(  # type: ignore[no-untyped-def]
    m, k, block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr
):
    """Return the rows and columns of a program's tile, and where its operands begin."""
    tile = tl.program_id(0)
    rows = tile % tl.cdiv(m, block_m) * block_m + tl.arange(0, block_m)
    columns = tile // tl.cdiv(m, block_m) * block_n + tl.arange(0, block_n)
    along = tl.arange(0, block_k)
    a, b = rows[:, None] * k + along[None, :], columns[None, :] * k + along[:, None]
    return rows, columns, a, b


@triton.jit  # type: ignore[untyped-decorator]
def _of_halves(  # type: ignore[no-untyped-def]
    high_a, low_a, high_b, low_b, out, m, n, k,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr, steps: tl.constexpr,
    scale: tl.constexpr,
):  # fmt: skip
    rows, columns, a, b = _places(m, k, block_m, block_n, block_k)
    total = tl.zeros((block_m, block_n), tl.float32)
    if steps == 0:
        for start in range(0, k, block_k):
            x, y = tl.load(high_a + a + start), tl.load(high_b + b + start)
            total = tl.dot(tl.load(low_a + a + start), y, total)
            total = tl.dot(x, tl.load(low_b + b + start), total)
            total = tl.dot(x, y, total)
    else:
        for slab in range(0, k, block_k * steps):
            part = tl.zeros((block_m, block_n), tl.float32)
            for step in range(steps):
                start = slab + step * block_k
                x, y = tl.load(high_a + a + start), tl.load(high_b + b + start)
                part = tl.dot(tl.load(low_a + a + start), y, part)
                part = tl.dot(x, tl.load(low_b + b + start), part)
                part = tl.dot(x, y, part)
            total += part
    tl.store(out + rows[:, None] * n + columns[None, :], total * scale)


@triton.jit  # type: ignore[untyped-decorator]
def _of_floats(  # type: ignore[no-untyped-def]
    a_ptr, b_ptr, out, m, n, k,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr, how: tl.constexpr,
):  # fmt: skip
    rows, columns, a, b = _places(m, k, block_m, block_n, block_k)
    total = tl.zeros((block_m, block_n), tl.float32)
    for start in range(0, k, block_k):
        total = tl.dot(
            tl.load(a_ptr + a + start), tl.load(b_ptr + b + start), total, input_precision=how
        )
    tl.store(out + rows[:, None] * n + columns[None, :], total)


def main() -> None:
    """Measure all ways; print and write the fastest tiles of each."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    a = torch.randn(_ROWS, _LENGTH, device="cuda")
    b = torch.randn(_COLUMNS, _LENGTH, device="cuda")
    truth = a.double() @ b.double().T
    halves = [*_halves(a), *_halves(b)]
    ways: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        ("library", lambda: {"ms": do_bench(lambda: a @ b.T), "error": _error(a @ b.T, truth)})
    ]
    ways += [
        (f"fp16x3, slab {s}", partial(_fastest, truth, partial(_of_halves_in, halves, s)))
        for s in _SLABS
    ]
    ways += [
        (how, partial(_fastest, truth, partial(_of_floats_in, a, b, how)))
        for how in ("tf32x3", "bf16x3")
    ]
    found = []
    for name, measure in ways:
        found.append({"way": name, **measure()})
        print(found[-1], flush=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _halves(t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scaled = t * _SCALE
    high = scaled.half()
    return high, (scaled - high.float()).half()


def _fastest(truth: torch.Tensor, way: Callable[[torch.Tensor, _Tiles], None]) -> dict[str, Any]:
    best: dict[str, Any] = {"ms": float("inf")}
    for tiles in _TILES:
        out = torch.empty(_ROWS, _COLUMNS, device=truth.device)
        try:
            ms = do_bench(partial(way, out, tiles))
        except Exception as error:  # noqa: BLE001 - tiles that do not fit, or do not compile
            print(tiles, str(error)[:100])
            continue
        if ms < best["ms"]:
            best = {"ms": ms, "error": _error(out, truth), "tiles": tiles}
    return best


def _of_halves_in(
    halves: Sequence[torch.Tensor], slab: int, out: torch.Tensor, tiles: _Tiles
) -> None:
    _launch(_of_halves, halves, out, tiles, slab // tiles[2], _SCALE**-2)


def _of_floats_in(
    a: torch.Tensor, b: torch.Tensor, precision: str, out: torch.Tensor, tiles: _Tiles
) -> None:
    m, n, k, stages, warps = tiles
    _launch(_of_floats, (a, b), out, (m, n, k // 2, stages, warps), precision)


def _launch(
    kernel: Any, operands: Sequence[torch.Tensor], out: torch.Tensor, tiles: _Tiles, *how: Any
) -> None:
    m, n, k, stages, warps = tiles
    grid = (triton.cdiv(_ROWS, m) * triton.cdiv(_COLUMNS, n),)
    options = {"num_stages": stages, "num_warps": warps}
    kernel[grid](*operands, out, _ROWS, _COLUMNS, _LENGTH, m, n, k, *how, **options)


def _error(out: torch.Tensor, truth: torch.Tensor) -> float:
    return float((out.double() - truth).norm() / truth.norm())


if __name__ == "__main__":
    main()
