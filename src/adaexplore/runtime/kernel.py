"""The kernel as a function of tensors, and the original that it stands for."""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from adaexplore.runtime.counts import count_run
from adaexplore.runtime.interface import call_of
from adaexplore.runtime.loaded import HERE, SPEC, versions_in_words
from adaexplore.runtime.spec import Form, VerifiedWorkload
from adaexplore.runtime.values import collect

_built_here = threading.local()  # originals and candidates by their device
_importing = threading.Lock()
_MIN_ALIGNMENT = 16
Home = tuple[dict[str, Any], str]
"""A dictionary of a module that holds a tensor, and its key."""


class UnusableKernelError(RuntimeError):
    """The kernel cannot be built on this machine; the text names the versions."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """The candidate, and the places that take the tensors of each call's state, by their names."""

    model: nn.Module
    homes: dict[str, list[Home]]

    @contextmanager
    def holding(self, state: Sequence[Tensor]) -> Iterator[None]:
        """Give the model these tensors, and take them away afterwards."""
        self._place(state)
        try:
            yield
        finally:
            self.hand_back()

    def hand_back(self) -> None:
        """Take the tensors of the state away."""
        self._place([None] * len(SPEC.state))

    def _place(self, state: Sequence[Tensor | None]) -> None:
        for name, tensor in zip(SPEC.state, state, strict=True):
            for home, own in self.homes.get(name, ()):
                home[own] = tensor


def run_candidate(inputs: Sequence[Tensor], state: Sequence[Tensor]) -> list[Tensor]:
    """Run the candidate on inputs and on the tensors of the original's state, with no gradients."""
    with torch.inference_mode(False), torch.no_grad():
        return _run(inputs, [t.detach() for t in state])


def run_with_gradients(inputs: Sequence[Tensor], state: Sequence[Tensor]) -> list[Tensor]:
    """Run the candidate as `run_candidate` does, in the graph of its own backward pass."""
    with torch.inference_mode(False), torch.enable_grad():
        return _run(inputs, state)


def _run(inputs: Sequence[Tensor], state: Sequence[Tensor]) -> list[Tensor]:
    count_run()
    device = device_of([*inputs, *state])
    with _on(device):
        candidate = _candidate_on(device)
        if SPEC.fresh:  # a copy keeps nothing from other calls
            candidate = copy.deepcopy(candidate)
        with candidate.holding(state):
            workload = _workload_of(inputs)
            given = [_as_verified(t, f) for t, f in zip(inputs, workload.inputs, strict=True)]
            args, kwargs = call_of(SPEC.interface, given, flat=True)
            found = tensors_in(candidate.model(*args, **kwargs))
        return _as_original(found, workload.outputs, [*inputs, *state])


def run_original(
    model: nn.Module, inputs: Sequence[Tensor], state: Sequence[Tensor]
) -> list[Tensor]:
    """Run the original on inputs with these tensors as its state."""
    args, kwargs = call_of(SPEC.interface, inputs, flat=True)
    given = dict(zip(SPEC.state, state, strict=True))
    return tensors_in(torch.func.functional_call(model, given, tuple(args), kwargs))


def tensors_in(result: Any) -> list[Tensor]:
    """Return the tensors of a result, in the order of the original's."""
    tensors: list[Tensor] = []
    if collect(SPEC.interface.returned, result, tensors):
        return tensors
    return [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor)]


def original_on(device: torch.device) -> nn.Module:
    """Return this thread's copy of the original, with weights that its constructor draws."""
    originals: dict[torch.device, nn.Module] = _built_here.__dict__.setdefault("originals", {})
    if device not in originals:
        originals[device] = _built(import_source("original"), "Model", device)
    return originals[device]


def state_of_package(device: torch.device) -> list[Tensor]:
    """Return tensors for the original's state: its constructor's, or like the captured ones."""
    model = original_on(device)
    own = dict(model.state_dict(keep_vars=True))
    own |= dict(model.named_buffers(remove_duplicate=False))
    generator = torch.Generator().manual_seed(SPEC.seed)
    state = []
    for name, (shape, stride, dtype, _) in zip(SPEC.state, SPEC.state_forms, strict=True):
        tensor = own[name].detach().clone()
        if name in SPEC.drawn:
            mean, deviation = SPEC.drawn[name]
            tensor = torch.randn(shape, generator=generator) * deviation + mean
        kind = getattr(torch, dtype.partition(".")[2])
        made = torch.empty_strided(shape, stride, dtype=kind, device=device)
        state.append(made.copy_(tensor))
    return state


def import_source(name: str) -> ModuleType:
    """Import `original` or `winner` of this package, once for all threads."""
    with _importing:
        return import_module(f"{__package__}.{name}")


def device_of(tensors: Sequence[Tensor]) -> torch.device:
    """Return the device of a call: that of its tensors on a GPU, or else the CPU."""
    return next((t.device for t in tensors if t.device.type != "cpu"), torch.device("cpu"))


def forms_of_outputs(inputs: Sequence[Tensor]) -> tuple[Form, ...]:
    """Return the forms of the original's outputs for inputs of a verified workload."""
    return _workload_of(inputs).outputs


def _workload_of(inputs: Sequence[Tensor]) -> VerifiedWorkload:
    given = [(tuple(t.shape), str(t.dtype)) for t in inputs]
    for workload in SPEC.workloads:
        if [(shape, dtype) for shape, _, dtype, _ in workload.inputs] == given:
            return workload
    raise ValueError(f"not verified for inputs of {[shape for shape, _ in given]}")


@contextmanager
def own_randomness(device: torch.device) -> Iterator[None]:
    """Put the random generators of torch and Python back afterwards."""
    python = random.getstate()
    with torch.random.fork_rng([device.index or 0] if device.type == "cuda" else []):
        try:
            yield
        finally:
            random.setstate(python)


def _candidate_on(device: torch.device) -> _Candidate:
    """Return this thread's candidate: its forward may keep state."""
    candidates: dict[torch.device, _Candidate] = _built_here.__dict__.setdefault("candidates", {})
    if device not in candidates:
        try:
            model = _built(import_source("winner"), "ModelNew", device)
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise UnusableKernelError(
                f"{SPEC.name}: the kernel cannot be built: {reason}; {versions_in_words()}"
            ) from error
        candidates[device] = candidate = _Candidate(model, _homes(model))
        candidate.hand_back()  # a copy of it copies no weights
    return candidates[device]


def _built(module: ModuleType, class_name: str, device: torch.device) -> nn.Module:
    with torch.inference_mode(False), torch.enable_grad(), own_randomness(device), device:
        torch.manual_seed(SPEC.seed)
        args, kwargs = _init_arguments()
        model: nn.Module = getattr(module, class_name)(*args, **kwargs).to(device)
        if SPEC.mode != "as-built":
            model.train(SPEC.mode == "train")
        constants = HERE / "constants.pt"
        if constants.exists():
            own = model.state_dict()
            with torch.no_grad():
                for name, tensor in torch.load(constants, weights_only=True).items():
                    if name in own and own[name].shape == tensor.shape:
                        own[name].copy_(tensor)
    return model


def _init_arguments() -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of the original's constructor."""
    make = getattr(import_source("original"), "get_init_inputs", None)
    match make() if make else []:
        case [list() | tuple() as args, dict() as kwargs]:
            return list(args), kwargs
        case dict() as kwargs:
            return [], kwargs
        case args:
            return list(args), {}


def _homes(model: nn.Module) -> dict[str, list[Home]]:
    """Return the places of a model for each tensor of the state of the same shape and dtype."""
    found: dict[str, list[Home]] = {}
    forms = dict(zip(SPEC.state, SPEC.state_forms, strict=True))
    for name in (*SPEC.state, *SPEC.ties):
        first = SPEC.ties.get(name, name)
        path, _, own = name.rpartition(".")
        layer: Any = model
        for part in path.split(".") if path else ():
            layer = layer._modules.get(part) if layer is not None else None
        shape, _, dtype, _ = forms[first]
        for home in (layer._parameters, layer._buffers) if layer is not None else ():
            held = home.get(own)
            if held is not None and (tuple(held.shape), str(held.dtype)) == (shape, dtype):
                found.setdefault(first, []).append((home, own))
    return found


def _on(device: torch.device) -> AbstractContextManager[Any]:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _as_verified(tensor: Tensor, form: Form) -> Tensor:
    """Return an input with the verified strides, also of axes of size 1, and alignment."""
    shape, stride, *_ = form
    if any(
        size > 1 and now != then
        for size, now, then in zip(shape, tensor.stride(), stride, strict=True)
    ):
        return tensor.new_empty_strided(shape, stride).copy_(tensor)  # it was broadcast
    if tensor.data_ptr() % _MIN_ALIGNMENT:
        tensor = tensor.clone()
    return tensor if tensor.stride() == stride else tensor.as_strided(shape, stride)


def _as_original(
    outputs: Sequence[Tensor], forms: Sequence[Form], arguments: Sequence[Tensor]
) -> list[Tensor]:
    """Return outputs in the original's memory layout, each in memory of its own."""
    taken = {t.untyped_storage().data_ptr() for t in arguments}
    made = []
    for output, (shape, stride, *_) in zip(outputs, forms, strict=True):
        memory = output.untyped_storage().data_ptr()
        if output.stride() != stride or memory in taken:
            like = torch.empty_strided(shape, stride, dtype=output.dtype, device=output.device)
            output = like.copy_(output)
        taken.add(memory)
        made.append(output)
    return made
