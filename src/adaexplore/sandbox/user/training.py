"""A training step as one call: a module's outputs, and the gradients of inputs and parameters.

The reference and a candidate are wrapped in the same way, so that a step is judged and timed like
any other module.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from adaexplore.core.verdict.gradients import Gradients
from adaexplore.sandbox.user.values import Inputs, flatten_outputs, map_tensors, tensors_of

UPSTREAM = "output_grads"
"""The name of the argument of a step with the gradients of the module's outputs."""


class StepResults(NamedTuple):
    """The results of a training step; gradients are by name."""

    forward: Any
    input_grads: dict[str, Tensor]
    parameter_grads: dict[str, Tensor]


class TrainingStep(nn.Module):
    """A module whose call goes forward and backward.

    Takes the arguments of `model` and, by the name `UPSTREAM`, a list with the gradient of each
    output that gradients lead from; returns a `StepResults`. Nothing accumulates: the gradients are
    those of this call. Raises `ValueError` for a model that lacks a parameter or a gradient.
    """

    def __init__(
        self, model: nn.Module, gradients: Gradients, parameters: Sequence[Tensor] = ()
    ) -> None:
        super().__init__()
        self.model = model
        self.gradients = gradients
        self._parameters_asked = list(parameters) or _parameters(model, gradients.parameters)
        self._forms: dict[tuple[torch.Size, ...], list[tuple[torch.Size, torch.dtype]]] = {}

    def around(self, model: nn.Module) -> TrainingStep:
        """Return the step of a module that computes with this one's parameters."""
        return TrainingStep(model, self.gradients, self._parameters_asked)

    def with_upstream(self, inputs: Inputs) -> Inputs:
        """Return the arguments of a step: those of the module, and upstream gradients.

        These are normal numbers that depend on the inputs alone: equal draws stay equal.
        """
        shapes = tuple(tensor.shape for tensor in tensors_of(inputs))
        if shapes not in self._forms:
            with torch.no_grad():
                outputs = flatten_outputs(self.model(*inputs.args, **inputs.kwargs))
            ends = [outputs[number][1] for number in self.gradients.outputs]
            self._forms[shapes] = [(out.shape, out.dtype) for out in ends]
        drawn = _drawn(self._forms[shapes], inputs)
        return Inputs(inputs.args, {**inputs.kwargs, UPSTREAM: drawn})

    def forward(self, *args: Any, **kwargs: Any) -> StepResults:
        """Go forward and backward."""
        upstream = kwargs.pop(UPSTREAM)
        with torch.enable_grad():
            given, leaves = _with_leaves(Inputs(list(args), kwargs), self.gradients.inputs)
            returned = self.model(*given.args, **given.kwargs)
            return self._backward(returned, leaves, upstream)

    def in_turn(self, *args: Any, **kwargs: Any) -> StepResults:
        """Go forward and backward; raise `ValueError` where forward is not done before backward.

        The upstream gradients hold no numbers until the outputs are there, and the outputs must be
        the same before and after the backward pass.
        """
        upstream = kwargs.pop(UPSTREAM)
        hidden = [tensor.clone() for tensor in upstream]
        with torch.enable_grad():
            given, leaves = _with_leaves(Inputs(list(args), kwargs), self.gradients.inputs)
            try:
                for tensor in upstream:
                    tensor.fill_(float("nan"))
                returned = self.model(*given.args, **given.kwargs)
                before = [(path, _bytes(out).clone()) for path, out in flatten_outputs(returned)]
            finally:
                for tensor, values in zip(upstream, hidden, strict=True):
                    tensor.copy_(values)
            step = self._backward(returned, leaves, upstream)
        for (path, own), (_, now) in zip(before, flatten_outputs(step.forward), strict=True):
            if not torch.equal(own, _bytes(now)):
                raise ValueError(f"backward changes {path}, which forward() has returned")
        return step

    def _backward(
        self, returned: Any, leaves: Sequence[Tensor], upstream: Sequence[Tensor]
    ) -> StepResults:
        names = self.gradients
        ends = _ends(returned, names.outputs)
        found = _grads(ends, [*leaves, *self._parameters_asked], upstream)
        for name, grad in zip([*names.input_names, *names.parameters], found, strict=True):
            if grad is None:
                raise ValueError(f"no gradient reaches {name}, where the reference has one")
        inputs = dict(zip(names.input_names, found, strict=False))
        parameters = dict(zip(names.parameters, found[len(inputs) :], strict=True))
        return StepResults(_detached(returned), inputs, parameters)  # type: ignore[arg-type]


def gradients_of(model: nn.Module, inputs: Inputs) -> Gradients:
    """Return the gradients that a module has: of all inputs and parameters that get one.

    Raises `ValueError` for a module without any.
    """
    tensors = tensors_of(inputs)
    floating = tuple(i for i, tensor in enumerate(tensors) if tensor.is_floating_point())
    own = {name: p for name, p in model.named_parameters() if p.requires_grad}
    with torch.enable_grad():
        given, leaves = _with_leaves(inputs, floating)
        outputs = [out for _, out in flatten_outputs(model(*given.args, **given.kwargs))]
        numbers = tuple(i for i, out in enumerate(outputs) if out.requires_grad)
        if not numbers:
            raise ValueError("no output of forward() has a gradient: there is no backward pass")
        ends = [outputs[i] for i in numbers]
        found = _grads(ends, [*leaves, *own.values()], list(map(torch.ones_like, ends)))
    names = _names(model, inputs)
    keys: list[int | str] = [*floating, *own]
    reached = {key: grad is not None for key, grad in zip(keys, found, strict=True)}
    of_inputs = tuple(i for i in floating if reached[i])
    return Gradients(
        numbers,
        of_inputs,
        tuple(names[i] for i in of_inputs),
        tuple(name for name in own if reached[name]),
        tuple(
            names[key] if isinstance(key, int) else key for key, has in reached.items() if not has
        ),
    )


def _drawn(forms: Sequence[tuple[torch.Size, torch.dtype]], inputs: Inputs) -> list[Tensor]:
    """Return normal numbers in these forms, by a seed made of all bytes of the inputs."""
    tensors = tensors_of(inputs)
    device = tensors[0].device
    if device.type == "meta":
        return [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in forms]
    seed = 0
    for tensor in tensors:
        seed = (31 * seed + int(_bytes(tensor).sum(dtype=torch.int64))) % 2**31
    generator = torch.Generator(device).manual_seed(seed)
    return [
        torch.randn(shape, generator=generator, device=device).to(dtype) for shape, dtype in forms
    ]


def _bytes(tensor: Tensor) -> Tensor:
    plain = tensor.detach().resolve_conj().resolve_neg()
    return plain.contiguous().reshape(-1).view(torch.uint8)


def _parameters(model: nn.Module, names: Sequence[str]) -> list[Tensor]:
    own = dict(model.named_parameters(remove_duplicate=False))
    for name in names:
        if name not in own:
            raise ValueError(
                f"its gradients are asked for by name, and it has no parameter {name!r} as the "
                f"reference has; it has {', '.join(own) or 'none'}"
            )
        if not own[name].requires_grad:
            raise ValueError(f"its parameter {name!r} must require a gradient")
    return [own[name] for name in names]


def _with_leaves(inputs: Inputs, numbers: Sequence[int]) -> tuple[Inputs, list[Tensor]]:
    """Return the same arguments with gradients wanted for the tensors of these numbers."""
    leaves: list[Tensor] = []
    count, wanted = itertools.count(), set(numbers)

    def leaf(tensor: Tensor) -> Tensor:
        if next(count) not in wanted:
            return tensor
        leaves.append(tensor.detach().requires_grad_())
        return leaves[-1]

    return map_tensors(leaf, inputs), leaves


def _ends(returned: Any, numbers: Sequence[int]) -> list[Tensor]:
    named = flatten_outputs(returned)
    if numbers[-1] >= len(named):
        raise ValueError(f"forward() returns {len(named)} tensors; the reference returns more")
    for number in numbers:
        path, out = named[number]
        if not out.requires_grad:
            raise ValueError(
                f"{path} has no gradient: compute it by operations that PyTorch differentiates, or "
                "in a torch.autograd.Function with a backward of your own"
            )
    return [named[number][1] for number in numbers]


def _grads(
    ends: Sequence[Tensor], leaves: Sequence[Tensor], upstream: Sequence[Tensor]
) -> list[Tensor | None]:
    """Return the gradient of each leaf; autocast is for the forward pass alone."""
    device = ends[0].device.type
    if not leaves:
        raise ValueError("no input and no parameter has a gradient: there is no backward pass")
    is_on = device != "meta" and torch.is_autocast_enabled(device)
    with torch.autocast(device, enabled=False) if is_on else nullcontext():
        return list(torch.autograd.grad(ends, leaves, upstream, allow_unused=True))


def _detached(returned: Any) -> Any:
    return map_tensors(Tensor.detach, Inputs([returned])).args[0]


def _names(model: nn.Module, inputs: Inputs) -> list[str]:
    """Return a name for each tensor of a call: the argument's, with a number where it has more."""
    parameters = [*inspect.signature(model.forward).parameters]
    named = [*zip([*parameters, *map(str, range(len(inputs.args)))], inputs.args, strict=False)]
    found: list[str] = []
    for name, value in [*named, *inputs.kwargs.items()]:
        count = len(tensors_of(Inputs([value])))
        found += [name] if count == 1 else [f"{name}[{i}]" for i in range(count)]
    return found
