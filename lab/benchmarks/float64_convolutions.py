"""Time convolutions of KernelBench in float64 on a GPU: by cuDNN, and by PyTorch's own kernels.

python lab/benchmarks/float64_convolutions.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

_CALLS = 2
_CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], Callable[[Tensor, Tensor], Tensor]]] = {
    "2/4, 2D": ((64, 8, 256, 256), (64, 8, 3, 3), functional.conv2d),
    "2/54, 2D": ((64, 64, 256, 256), (64, 64, 3, 3), functional.conv2d),
    "2/90, 3D": ((128, 8, 16, 64, 64), (64, 8, 3, 3, 3), functional.conv3d),
    "2/5, transposed": ((32, 64, 256, 256), (64, 64, 4, 4), functional.conv_transpose2d),
}


def main() -> None:
    """Print the milliseconds of each case, by cuDNN and without it."""
    for name, (images, weights, convolve) in _CASES.items():
        for dtype in (torch.float32, torch.float64):
            x = torch.randn(*images, device="cuda", dtype=dtype)
            w = torch.randn(*weights, device="cuda", dtype=dtype)
            times_ms = []
            for enabled in (True, False):
                with torch.backends.cudnn.flags(enabled=enabled, allow_tf32=False):
                    times_ms.append(_time_ms(convolve, x, w))
            by_cudnn, own = times_ms
            print(f"{name:16} {dtype}  cuDNN {by_cudnn:7.1f} ms  own {own:7.1f} ms", flush=True)


def _time_ms(convolve: Callable[[Tensor, Tensor], Tensor], x: Tensor, w: Tensor) -> float:
    convolve(x, w)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(_CALLS):
        convolve(x, w)
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - began) / _CALLS


if __name__ == "__main__":
    main()
