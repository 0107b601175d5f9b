"""The steps of recurrent layers, which TorchInductor unrolls one by one."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor, nn

MOST_STEPS = 64
"""Steps of recurrent layers up to which a graph is unrolled; more take minutes to compile."""

MOST_OPERATIONS = 8000
"""Operations of a graph, such as a written-out recurrence, up to which it is compiled."""


def recurrent_steps(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return the steps of all recurrent layers in a call, each layer and direction counted.

    A model with such layers is called once, on a copy; another has none.
    """
    if not any(map(_is_recurrent, model.modules())):
        return 0
    called, steps = copy.deepcopy(model), 0

    def count(module: nn.Module, given: tuple[Any, ...]) -> None:
        nonlocal steps
        steps += _steps(module, given[0])

    for module in called.modules():
        if _is_recurrent(module):
            module.register_forward_pre_hook(count)
    called(*args, **kwargs)
    return steps


def _is_recurrent(module: nn.Module) -> bool:
    return isinstance(module, nn.RNNBase | nn.RNNCellBase)


def _steps(module: nn.Module, sequence: Any) -> int:
    if not isinstance(module, nn.RNNBase):
        return 1
    layers = module.num_layers * (2 if module.bidirectional else 1)
    if not isinstance(sequence, Tensor):  # packed: a batch size for each step
        return layers * len(sequence.batch_sizes)
    batched = sequence.dim() > 2
    return layers * sequence.shape[1 if batched and module.batch_first else 0]
