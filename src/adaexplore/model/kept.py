"""A model that is run and left exactly as it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as nn_module
from torch.nn.parameter import is_lazy

from adaexplore.core.errors import BadInputError
from adaexplore.model.calls import ModelCall
from adaexplore.problems.live import device_of
from adaexplore.problems.optimized import own_randomness

_HOOKS = ("forward", "forward_pre", "backward", "backward_pre")


def refuse_unfit(model: nn.Module, calls: Sequence[ModelCall]) -> str:
    """Return the device of a model and its calls; raise `BadInputError` for a model unfit to run.

    It must be in eval mode, its modules Python's, its weights made, and all of its tensors and
    inputs on one device.
    """
    name = type(model).__name__
    if hasattr(model, "_orig_mod"):  # of torch.compile; hooks do not run inside
        raise BadInputError("the model is compiled; give the module that went into torch.compile")
    if any(getattr(nn_module, f"_global_{kind}_hooks") for kind in _HOOKS):
        raise BadInputError(
            "hooks of all modules are set, which kernels would leave out; remove them"
        )
    for path, module in model.named_modules():
        place = f"{name}, module {path}," if path else name
        if module.training:
            raise BadInputError(f"{place} is in training mode; call model.eval() before")
        if isinstance(module, torch.jit.ScriptModule):
            raise BadInputError(f"{place} is TorchScript; give the module that it was made from")
        if any(map(is_lazy, chain(module.parameters(False), module.buffers(False)))):
            raise BadInputError(f"{place} has weights without a shape yet; call the model before")
    inputs = (t for call in calls for t in call.tensors)
    return device_of(name, [*model.parameters(), *model.buffers(), *inputs])


@contextmanager
def left_alone(model: nn.Module) -> Iterator[list[str]]:
    """Put buffers, attributes and random generators back after runs of a model.

    The list has, after the body, the names of the buffers and attributes that the runs changed.
    """
    modules = dict(model.named_modules())
    buffers = [(name, b, b.clone()) for name, b in model.named_buffers()]
    homes = [(path, home, dict(home)) for path, m in modules.items() for home in _homes(m)]
    changed: list[str] = []
    with own_randomness():
        try:
            yield changed
        finally:
            with torch.no_grad():
                for name, buffer, before in buffers:
                    if not _is_equal(buffer, before):
                        changed.append(name)
                        buffer.copy_(before)
            for path, home, attributes in homes:
                changed += [f"{path}.{key}".lstrip(".") for key in _differing(home, attributes)]
                home.clear()
                home.update(attributes)


def _homes(module: nn.Module) -> list[dict[str, Any]]:
    return [vars(module), module._parameters, module._buffers, module._modules]


def _differing(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    names = dict.fromkeys([*now, *before])
    return [name for name in names if now.get(name) is not before.get(name)]


def _is_equal(one: Tensor, other: Tensor) -> bool:
    if one.is_floating_point() or one.is_complex():
        return torch.equal(one.nan_to_num(), other.nan_to_num())
    return torch.equal(one, other)
