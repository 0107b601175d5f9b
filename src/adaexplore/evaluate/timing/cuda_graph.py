"""Capture of a call in a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import torch

_Outputs = TypeVar("_Outputs")

_WARM_UPS = 3  # as PyTorch's documentation asks


def warm_aside(call: Callable[[], object], device: str) -> None:
    """Call on a side stream, so that libraries set up before a capture what cannot be captured."""
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(_WARM_UPS):
            call()
    torch.cuda.current_stream(device).wait_stream(side)
    torch.cuda.synchronize(device)


def untold(call: Callable[[], _Outputs]) -> Callable[[], _Outputs]:
    """Return a call in which `torch.cuda.is_current_stream_capturing` returns False."""

    def run() -> _Outputs:
        asked = torch.cuda.is_current_stream_capturing
        torch.cuda.is_current_stream_capturing = lambda: False
        try:
            return call()
        finally:
            torch.cuda.is_current_stream_capturing = asked

    return run


def capture(call: Callable[[], _Outputs], device: str) -> tuple[torch.cuda.CUDAGraph, _Outputs]:
    """Capture one call; return the graph, and the outputs that its replays write.

    Raises what the call raises; generator, stream and allocator are then as before. Autocast keeps
    the weights that it has cast: the graph would read those of an earlier call after they are
    freed, and those of the capture hold nothing before the first replay. cuBLAS keeps a workspace:
    that of another graph ends with it. So the capture begins and ends without either.
    """
    index = torch.device(device).index or 0
    graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    is_captured = False
    _forget_kept()
    try:
        with (
            put_back_after_failure(device),
            torch.cuda.device(device),
            torch.cuda.graph(graph, pool, side, capture_error_mode="thread_local"),
        ):
            outputs = call()
        is_captured = True
    finally:
        _forget_kept()
        if not is_captured:
            _end_pool(index, pool)
    return graph, outputs


@contextmanager
def put_back_after_failure(device: str) -> Iterator[None]:
    """Put the random generator and the stream of a GPU back if a capture in the body fails."""
    generator = torch.cuda.default_generators[torch.device(device).index or 0]
    state, stream = generator.clone_state(), torch.cuda.current_stream(device)
    is_done = False
    try:
        yield
        is_done = True
    finally:
        if not is_done:
            generator.graphsafe_set_state(state)  # it would still count for the capture
            torch.cuda.set_stream(stream)


def _forget_kept() -> None:
    """Drop what autocast and cuBLAS keep from call to call."""
    torch.clear_autocast_cache()
    torch._C._cuda_clearCublasWorkspaces()


def _end_pool(index: int, pool: tuple[int, int]) -> None:
    """Give up a pool whose capture failed.

    Before torch 2.12 the allocator takes such a capture for unfinished (pytorch #180395), and gives
    no memory back until the process ends. Later ones have ended it, and raise.
    """
    with suppress(RuntimeError):
        torch._C._cuda_endAllocateToPool(index, pool)
        torch._C._cuda_releasePool(index, pool)
