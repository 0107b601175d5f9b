"""The baselines on offer: PyTorch's own ways to run a module, one entry each."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from adaexplore.evaluate.timing.cuda_graph import capture, warm_aside
from adaexplore.evaluate.timing.outputs import finished
from adaexplore.sandbox.user.training import TrainingStep
from adaexplore.sandbox.user.values import Inputs, NamedTensor, map_tensors, tensors_of

Call = Callable[[Inputs], list[NamedTensor]]
"""A call of a baseline; no later call overwrites the outputs."""

BUILD_ERRORS = (RuntimeError, TypeError, ValueError, AssertionError)
"""What a failing build raises: CUDA, Dynamo and Inductor a `RuntimeError`, user code the others."""

_RECORDED = 3  # calls after which CUDA graph trees replay: one to warm up, one to record
_CONVOLUTIONS: Mapping[type[nn.Module], tuple[int, torch.memory_format]] = {
    nn.Conv2d: (4, torch.channels_last),
    nn.ConvTranspose2d: (4, torch.channels_last),
    nn.Conv3d: (5, torch.channels_last_3d),
    nn.ConvTranspose3d: (5, torch.channels_last_3d),
}
"""Layers that can have their channels last: the dimensions of their tensors, and the layout."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A module that baselines are made of, and inputs like those that it will be called with.

    `forms` is the number of workloads with shapes of their own that share the module.
    """

    model: nn.Module
    inputs: Inputs
    device: str
    forms: int = 1


@dataclass(frozen=True, slots=True)
class Baseline:
    """A way to run a module.

    `name` begins with "eager" or "compile" (see `feedback.baseline_name`). `build` returns the
    call; it runs in the scope of the precision class, as every call does. `applies` says for which
    subjects it is offered.
    """

    name: str
    build: Callable[[Subject], Call]
    applies: Callable[[Subject], bool] = lambda _: True


def eager(subject: Subject) -> Call:
    """Return calls of the module as it is."""
    return lambda inputs: finished(subject.model(*inputs.args, **inputs.kwargs))


def compiled(mode: str | None = None) -> Callable[[Subject], Call]:
    """Return a builder by `torch.compile` in a mode, None for its defaults.

    With several workloads, each is compiled for its own shapes, which is the stronger baseline.
    """

    def build(subject: Subject) -> Call:
        dynamic = False if subject.forms > 1 else None
        _allow_recompiling(subject.forms)
        model = _compiled(subject.model, mode=mode, dynamic=dynamic)
        call = eager(replace(subject, model=model))
        if mode is None or not _is_overwritten(call, subject.inputs):
            return call
        return _cloned(call)

    return build


@dataclass(frozen=True, slots=True)
class _Replays:
    """Replays of a graph: it reads the parameters of `model` and `places`, and writes `outputs`."""

    model: nn.Module
    places: Sequence[torch.Tensor]
    graph: torch.cuda.CUDAGraph
    outputs: Sequence[NamedTensor]

    def __call__(self, inputs: Inputs) -> list[NamedTensor]:
        for place, tensor in zip(self.places, tensors_of(inputs), strict=True):
            place.copy_(tensor)
        self.graph.replay()
        return [(path, tensor.clone()) for path, tensor in self.outputs]


def captured(subject: Subject) -> Call:
    """Return replays of a CUDA graph of one eager call.

    A graph reads and writes fixed addresses: inputs are copied in and outputs out, in every call.
    Raises one of `BUILD_ERRORS` for a module that cannot be captured. The process's random
    generator is then as before, but PyTorch's allocator may take the capture for unfinished.
    """
    static = map_tensors(_copy, subject.inputs)
    model = subject.model
    if isinstance(model, TrainingStep):
        # The parameters of other steps have autograd nodes that wait for those steps' stream.
        model = copy.deepcopy(model)
    call = eager(replace(subject, model=model))
    warm_aside(lambda: call(static), subject.device)
    graph, outputs = capture(lambda: call(static), subject.device)
    return _Replays(model, tensors_of(static), graph, outputs)


def channels_last(build: Callable[[Subject], Call]) -> Callable[[Subject], Call]:
    """Return a builder whose module has its channels last; converting inputs is part of a call."""

    def converted(subject: Subject) -> Call:
        formats = _formats(subject.model)
        model = copy.deepcopy(subject.model)
        for layer in _convolutions(model):
            _, layout = _CONVOLUTIONS[type(layer)]
            layer.to(memory_format=layout)  # type: ignore[call-overload]

        def convert(tensor: torch.Tensor) -> torch.Tensor:
            layout = formats.get(tensor.dim())
            return tensor if layout is None else tensor.contiguous(memory_format=layout)

        inputs = map_tensors(convert, subject.inputs)
        call = build(replace(subject, model=model, inputs=inputs))
        return lambda inputs: call(map_tensors(convert, inputs))

    return converted


def _has_gpu(subject: Subject) -> bool:
    return subject.device != "cpu"


def _has_images(subject: Subject) -> bool:
    """Return True if convolutions take inputs that can have their channels last."""
    formats = _formats(subject.model)
    return any(t.dim() in formats and t.is_floating_point() for t in tensors_of(subject.inputs))


OFFERED: tuple[Baseline, ...] = (
    Baseline("eager", eager),
    Baseline("compile", compiled()),
    Baseline("eager-channels-last", channels_last(eager), _has_images),
    Baseline(
        "compile-channels-last",
        channels_last(compiled()),
        lambda subject: _has_gpu(subject) and _has_images(subject),
    ),
    Baseline("compile-reduce-overhead", compiled("reduce-overhead"), _has_gpu),
    Baseline("compile-max-autotune", compiled("max-autotune"), _has_gpu),
    Baseline("eager-cuda-graph", captured, _has_gpu),
)
"""All baselines; adding one is adding an entry."""


def names_offered(subject: Subject) -> list[str]:
    """Return the names of the baselines that apply to a subject."""
    return [baseline.name for baseline in OFFERED if baseline.applies(subject)]


def baseline_named(name: str) -> Baseline:
    """Return a baseline by its name."""
    return next(baseline for baseline in OFFERED if baseline.name == name)


def _compiled(model: nn.Module, **options: Any) -> Any:
    """Return a compiled module; of a training step, the module whose gradients it takes."""
    if isinstance(model, TrainingStep):
        return model.around(_compiled(model.model, **options))
    return torch.compile(model, **options)


def _allow_recompiling(forms: int) -> None:
    """Let Dynamo keep the code of every baseline and form; past its limit it runs eager code."""
    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, 2 * forms * len(OFFERED))


def _cloned(call: Call) -> Call:
    return lambda inputs: [(path, tensor.clone()) for path, tensor in call(inputs)]


def _is_overwritten(call: Call, inputs: Inputs) -> bool:
    """Return True if a call puts outputs where the outputs of the call before lie.

    Inductor's CUDA graphs do so, and Inductor may decide against them.
    """
    for _ in range(_RECORDED):
        call(inputs)
    before = call(inputs)
    places = [tensor.data_ptr() for _, tensor in before]  # not readable any more after a call
    after = call(inputs)
    del before  # until now, so that its memory is not free for the second call
    return any(tensor.data_ptr() in places for _, tensor in after)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with the same strides, its elements all in places of their own."""
    return tensor.detach().clone(memory_format=torch.preserve_format)


def _convolutions(model: nn.Module) -> list[nn.Module]:
    return [layer for layer in model.modules() if type(layer) in _CONVOLUTIONS]


def _formats(model: nn.Module) -> dict[int, torch.memory_format]:
    """Return the layout of tensors by their dimensions, for those that convolutions take."""
    return dict(_CONVOLUTIONS[type(layer)] for layer in _convolutions(model))
