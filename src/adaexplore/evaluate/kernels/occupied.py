"""A call on a GPU whose multiprocessors are partly held by another kernel, for a limited time.

Kernels of two processes take turns on a GPU, so the holding kernel runs in the candidate's process.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer

_WARPS = 32  # half of the threads of a multiprocessor
_POLL_S = 0.0005


@triton.jit
def _hold(released, most_ns):  # type: ignore[no-untyped-def]
    start = globaltimer()
    while (tl.load(released, volatile=True) == 0) & (globaltimer() - start < most_ns):
        pass


def ends_beside(call: Callable[[], object], device: str, hold_s: float) -> bool:
    """Return whether a call ends while every second multiprocessor is held, within `hold_s`.

    A kernel whose blocks wait for others that find no room ends only when the time is over.
    """
    half = torch.cuda.get_device_properties(device).multi_processor_count // 2
    released = torch.zeros(1, dtype=torch.int32, device=device)
    holding, releasing = (torch.cuda.Stream(device) for _ in range(2))  # type: ignore[no-untyped-call]
    call()  # compile and tune first
    torch.cuda.synchronize(device)
    with torch.cuda.stream(holding):
        _hold[(half,)](released, 0, num_warps=_WARPS)
    torch.cuda.synchronize(device)
    ended = torch.cuda.Event()  # type: ignore[no-untyped-call]
    started = time.monotonic()
    with torch.cuda.stream(holding):
        _hold[(half,)](released, int(1e9 * hold_s), num_warps=_WARPS)
    call()
    ended.record()
    is_over = False
    while not is_over and time.monotonic() < started + hold_s:
        time.sleep(_POLL_S)
        is_over = bool(ended.query())  # type: ignore[no-untyped-call]
    in_time = is_over and time.monotonic() < started + hold_s
    with torch.cuda.stream(releasing):
        released.fill_(1)
    torch.cuda.synchronize(device)
    return in_time
