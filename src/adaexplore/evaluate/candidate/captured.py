"""A candidate's call inside a CUDA graph, as that of one module among others of a model."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from adaexplore.evaluate.timing.cuda_graph import capture, untold
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Inputs, NamedTensor


def run_captured(instance: Instance, inputs: Inputs, device: str) -> list[NamedTensor]:
    """Return the outputs of a call that is captured in a CUDA graph and replayed.

    A call with weights at other addresses is made before, as a model's other modules make theirs.
    Raises what the call raises where it cannot be captured.
    """
    with _weights_elsewhere(instance.model):
        instance(inputs)
    torch.cuda.synchronize(device)
    graph, outputs = capture(untold(lambda: instance(inputs)), device)
    graph.replay()
    return outputs


@contextmanager
def _weights_elsewhere(model: nn.Module) -> Iterator[None]:
    """Put copies of all parameters and buffers in their places for a while."""
    homes: list[MutableMapping[str, Any]] = []
    for module in model.modules():
        homes += module._parameters, module._buffers
    before = [dict(home) for home in homes]
    try:
        for home in homes:
            home.update({name: t.clone() for name, t in home.items() if t is not None})
        yield
    finally:
        for home, tensors in zip(homes, before, strict=True):
            home.update(tensors)
