"""Capture of a call in a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
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


def capture(call: Callable[[], _Outputs], device: str) -> tuple[torch.cuda.CUDAGraph, _Outputs]:
    """Capture one call; return the graph, and the outputs that its replays write.

    Raises what the call raises; the random generator and the stream are then as before. Autocast
    keeps the weights that it has cast: the graph would read those of an earlier call after they are
    freed, and those of the capture hold nothing before the first replay. So it forgets them.
    """
    generator = torch.cuda.default_generators[torch.device(device).index or 0]
    state, stream = generator.clone_state(), torch.cuda.current_stream(device)
    graph = torch.cuda.CUDAGraph()
    is_captured = False
    torch.clear_autocast_cache()
    try:
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            outputs = call()
        is_captured = True
    finally:
        torch.clear_autocast_cache()
        if not is_captured:
            generator.graphsafe_set_state(state)  # it would still count for the capture
            torch.cuda.set_stream(stream)
    return graph, outputs
