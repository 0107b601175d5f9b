"""The guards of a call: the conditions under which the kernel was verified.

They are written for two readers: Python, at every eager call, and TorchDynamo, which turns them
into guards of the compiled graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensor
from torch.nn.modules import module as nn_module

from adaexplore.runtime.interface import functions_of, place_of, tensors_beside, tensors_of_call
from adaexplore.runtime.loaded import SPEC
from adaexplore.runtime.spec import Form, gpu_of

Guarded = tuple[str, list[Tensor], list[Tensor]]
"""The reason of a refusal, empty where there is none; the inputs; the state."""


Functions = tuple[tuple[tuple[str, Any], ...], ...]
"""The attributes of each layer that can be called, and its tensors beside the state, by name."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What of a module's layers was compared with the verified: classes, functions, tensors.

    `place` is that of the module among the layers of a cache.
    """

    kinds: tuple[type[nn.Module], ...]
    forwards: tuple[Any, ...]
    functions: Functions
    place: int | None

    @staticmethod
    def of(module: nn.Module) -> Verified:
        """Return the code of a module as it is now."""
        layers = [layer for _, layer in module.named_modules(remove_duplicate=False)]
        kinds = tuple(map(type, layers))
        functions = tuple((*functions_of(each), *tensors_beside(each)) for each in layers)
        return Verified.of_kinds(kinds, functions, place_of(module))

    @staticmethod
    def of_kinds(
        kinds: tuple[type[nn.Module], ...], functions: Functions, place: int | None
    ) -> Verified:
        """Return the code of classes as it is now."""
        return Verified(kinds, tuple(kind.forward for kind in kinds), functions, place)


_LAYERS = SPEC.interface.layers
_MISSING = object()
_PLAIN_TENSORS = (Tensor, nn.Parameter, nn.Buffer)


def guarded(
    module: nn.Module, verified: Verified, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Guarded:
    """Return the tensors that cross the border of the kernel, or the reason why it must not run."""
    inputs = tensors_of_call(SPEC.interface, args, kwargs, verified.place)
    if inputs is None:
        return "other arguments than verified", [], []
    why, state = state_of(module, verified)
    if not why:
        why = _why_not_here(module) or _why_not_inputs(inputs) or _why_not_state(state)
    if not why:
        why = _why_not_devices(inputs, state) or _why_not_written(inputs, state)
    return why, inputs, state


def state_of(module: nn.Module, verified: Verified) -> tuple[str, list[Tensor]]:
    """Return the tensors of a module's state in order, or the first difference of its structure."""
    layers: dict[str, nn.Module] = {}
    found: dict[str, Tensor] = {}
    if len(verified.kinds) != len(_LAYERS):
        return "the code of its classes is not the verified one", []
    for i, layer in enumerate(_LAYERS):
        parent, _, own = layer.path.rpartition(".")
        here = _inside(layers[parent], own) if layer.path else module
        where = layer.path or "the module"
        if here is None or type(here) is not verified.kinds[i]:
            return f"{where} is a {type(here).__name__}, not a {layer.kind}", []
        if verified.kinds[i].forward is not verified.forwards[i]:
            return f"the forward of {layer.kind} was replaced", []
        for name, function in verified.functions[i]:
            if getattr(here, name, _MISSING) is not function:
                return f"{where} has another {name}", []
        layers[layer.path] = here
        why = _why_not_layer(here, layer.constants, layer.path, module.training)
        if why:
            return f"{where} {why}", []
        if len(here._modules) != len(layer.children):
            return f"{where} has other layers inside", []
        for name, form in layer.state.items():
            tensor: Tensor | None = here._parameters.get(name)
            if tensor is None:
                tensor = here._buffers.get(name)
            path = f"{layer.path}.{name}" if layer.path else name
            if (tensor is None) != (form is None):
                return f"{path} is {'missing' if tensor is None else 'there'}", []
            if tensor is not None:
                found[path] = tensor
    for path, first in SPEC.ties.items():
        if found[path] is not found[first]:
            return f"{path} is no longer the tensor {first}", []
    return "", [found[name] for name in SPEC.state]


def _inside(layer: nn.Module, name: str) -> nn.Module | None:
    return layer._modules.get(name)


def _why_not_layer(
    layer: nn.Module, constants: Mapping[str, Any], path: str, training: bool
) -> str:
    for name, value in constants.items():
        now = getattr(layer, name, _MISSING)
        if now is not value and not (type(now) is type(value) and now == value):
            return f"has another {name}"
    if layer.training != training and len(SPEC.interface.modes) == 1:
        return "is in another mode than the whole"
    if not path:  # hooks and `forward` of the whole run around the kernel
        return ""
    if (
        len(layer._forward_hooks)
        or len(layer._forward_pre_hooks)
        or len(layer._backward_hooks)
        or len(layer._backward_pre_hooks)
    ):
        return "has hooks"
    return "has a forward of its own" if "forward" in layer.__dict__ else ""


def _why_not_here(module: nn.Module) -> str:
    if module.training not in SPEC.interface.modes:
        return f"it is in {'training' if module.training else 'evaluation'} mode"
    if torch.is_autocast_enabled(SPEC.device):
        return "autocast is on"
    if (
        len(nn_module._global_forward_hooks)
        or len(nn_module._global_forward_pre_hooks)
        or len(nn_module._global_backward_hooks)
        or len(nn_module._global_backward_pre_hooks)
    ):
        return "hooks of all modules are set"
    if not torch.compiler.is_compiling() and _in_transform():
        return "a transform of torch.func or forward-mode differentiation is at work"
    return ""


def _why_not_inputs(inputs: Sequence[Tensor]) -> str:
    for tensor in inputs:
        if not _is_plain(tensor):
            return f"an input is a {type(tensor).__name__} of layout {tensor.layout}"
    for workload in SPEC.workloads:
        if all(_has_form(t, form) for t, form in zip(inputs, workload.inputs, strict=True)):
            return ""
    if torch.compiler.is_compiling():  # a graph for every size has no sizes to name
        return "not verified for inputs of these forms"
    given = ", ".join(_in_words(t) for t in inputs)
    return f"not verified for inputs of {given}"


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is one that a kernel takes, or stands for one in `torch.export`."""
    is_exported = torch.compiler.is_exporting() and isinstance(tensor, FakeTensor)
    return (is_exported or type(tensor) in _PLAIN_TENSORS) and tensor.layout is torch.strided


def _why_not_state(state: Sequence[Tensor]) -> str:
    for tensor, name, form in zip(state, SPEC.state, SPEC.state_forms, strict=True):
        if not _is_plain(tensor):
            return f"{name} is a {type(tensor).__name__} of layout {tensor.layout}"
        if not _has_form(tensor, form):
            return f"{name} is {_in_words(tensor)}"
    return ""


def _why_not_devices(inputs: Sequence[Tensor], state: Sequence[Tensor]) -> str:
    if SPEC.device == "cpu":
        return ""
    devices = {t.device for t in (*inputs, *state) if t.device.type == SPEC.device}
    if len(devices) != 1:
        return "its tensors lie on several devices"
    return "" if gpu_is_verified(devices.pop()) else "the GPU is of another kind than verified"


def _why_not_written(inputs: Sequence[Tensor], state: Sequence[Tensor]) -> str:
    if not SPEC.interface.writes or not torch.is_grad_enabled():
        return ""
    if any(tensor.requires_grad for tensor in (*inputs, *state)):
        return "gradients are asked for, and a call writes to a cache"
    return ""


def gpu_is_verified(device: torch.device) -> bool:
    """Return whether a GPU has the compute capability of the verdict."""
    return gpu_of(device) == SPEC.gpu


torch.compiler.assume_constant_result(gpu_is_verified)  # type: ignore[no-untyped-call]


def _has_form(tensor: Tensor, form: Form) -> bool:
    """Return whether a tensor has a form; one that is broadcast is laid out for the kernel."""
    shape, stride, dtype, device = form
    if tuple(tensor.shape) != shape or tensor.device.type != device:
        return False
    if tensor.dtype is not _DTYPES[dtype]:
        return False
    return all(
        size == 1 or now == then or now == 0
        for size, now, then in zip(shape, tensor.stride(), stride, strict=True)
    )


def _in_words(tensor: Tensor) -> str:
    shape = "x".join(str(size) for size in tensor.shape) or "scalar"
    words = f"{shape} {str(tensor.dtype).partition('.')[2]} on {tensor.device.type}"
    return words if tensor.is_contiguous() else f"{words}, strides {tuple(tensor.stride())}"


def _in_transform() -> bool:
    return bool(
        torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
    )


_FORMS = [form for w in SPEC.workloads for form in w.inputs] + list(SPEC.state_forms)
_DTYPES = {dtype: getattr(torch, dtype.partition(".")[2]) for _, _, dtype, _ in _FORMS}
