"""A call of a model in a CUDA graph, which runs on the same arguments each time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from adaexplore.evaluate.timing.cuda_graph import capture, untold, warm_aside
from adaexplore.model.calls import ModelCall
from adaexplore.model.mask_reads import noted_reads, with_reads


class CapturedCall:
    """A captured call: a replay reads the tensors of `call`, and writes those of `outputs`.

    Among the arguments may be the place in a cache.
    """

    def __init__(self, graph: torch.cuda.CUDAGraph, call: ModelCall, outputs: Any) -> None:
        self.call = call
        self.outputs = outputs
        self._graph = graph
        self._places = [(t, t.clone()) for t in call.tensors if not t.is_floating_point()]

    def __call__(self) -> Any:
        """Replay the graph and return the outputs."""
        self._graph.replay()
        return self.outputs

    def reset(self) -> None:
        """Put integers among the arguments back, so that no cache gets full."""
        for tensor, value in self._places:
            tensor.copy_(value)


def capture_call(run: Callable[[ModelCall], Any], call: ModelCall, device: str) -> CapturedCall:
    """Capture a call, on copies of its arguments, after it has run on them some times.

    The graph has the operations of an eager run: a library that asks whether it is being captured
    is told no. (transformers 5 makes attention masks then that it leaves out otherwise; kernels
    refuse the masks, and PyTorch computes attention with them in float32.) It is told where it
    reads from the arguments whether a mask is needed: other arguments may need another.
    """
    own = call.copied()
    once: Callable[[], Any] = partial(run, own)
    warm_aside(once, device)
    reads = noted_reads(once)
    if reads is not None:
        once = untold(with_reads(once, reads))
    graph, outputs = capture(once, device)
    return CapturedCall(graph, own, outputs)
