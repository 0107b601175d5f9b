"""The candidate's process for trials of its uses outside the judge; it decides nothing."""

from __future__ import annotations

import copy
import dataclasses
import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from adaexplore.evaluate.candidate.worker import CandidateSession, serve
from adaexplore.evaluate.wire import messages as wire
from adaexplore.evaluate.wire.tensors import open_shared
from adaexplore.evaluate.wire.use_messages import (
    GradientsTried,
    HowToBuild,
    Part,
    TakePlaces,
    TakeWeights,
    Tried,
    TryGradients,
    TryUse,
    Whose,
)
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.user.values import (
    Inputs,
    flatten_outputs,
    map_tensors,
    tensors_of,
)

_DELAY_CYCLES = 20_000_000  # some ten milliseconds: long after a launch on another stream


def main(channel: Channel, control: Channel | None) -> None:  # noqa: ARG001 - worker signature
    """Answer requests until the channel closes; a worker's entry."""
    serve(channel, UseSession())


class _DoesNotApplyError(Exception):
    """The candidate lacks what a trial is about."""


class UseSession(CandidateSession):
    """A candidate in the hands of a user: every trial builds models of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: dict[Whose, dict[str, Tensor]] = {}
        self._gradient_places: list[Tensor] = []
        self._how: HowToBuild | None = None

    def answer(self, request: wire.Request[Any], fds: list[int]) -> Any:
        """Run one request and return its reply."""
        match request:
            case TakeWeights():
                given = zip(request.names, open_shared(request.handles, fds), strict=True)
                self.weights.setdefault(request.whose, {}).update(given)
            case TakePlaces():
                self._gradient_places += open_shared(request.handles, fds)
            case HowToBuild():
                self._how = request
            case TryUse():
                return self._try(request)
            case TryGradients():
                return self._try_gradients(request)
            case _:
                return super().answer(request, fds)
        return wire.Done()

    def build(self, whose: Whose) -> nn.Module:
        """Return a new model with weights of the reference."""
        assert self._instance is not None
        assert self._how is not None
        instance = self._instance
        if whose == "moved":
            instance = dataclasses.replace(instance, device=torch.device("cpu"))
        seed = self._how.other_seed if whose == "other" else self._how.seed
        with torch.enable_grad():  # the mode that is kept as a setting of the process
            model = instance.rebuilt(seed, self._how.mode).model
            self._state.restore_flags()
        if self._how.give_weights:
            own = model.state_dict()
            with torch.no_grad():
                for name, tensor in self.weights[whose].items():
                    if name in own and own[name].shape == tensor.shape:
                        own[name].copy_(tensor)
        return model

    @property
    def first_inputs(self) -> Inputs:
        """The problem's own inputs."""
        return self._sets[0].inputs

    @property
    def device(self) -> torch.device:
        """The device of the problem."""
        assert self._instance is not None
        return self._instance.device

    def _try(self, request: TryUse) -> Tried:
        given = self._sets[request.input_set]
        try:
            with torch.no_grad():
                outputs = flatten_outputs(_TRIALS[request.part](self, given.inputs))
        except _DoesNotApplyError:
            return Tried((), applies=False)
        return Tried(self._delivered(outputs, given.buffers).outputs)

    def _try_gradients(self, request: TryGradients) -> GradientsTried:
        given = self._sets[request.input_set]
        model = self.build("own")
        inputs, leaves = with_leaves(given.inputs) if request.inputs else (given.inputs, [])
        own = dict(model.named_parameters())
        wanted: list[Tensor | None] = [leaves[number] for number in request.inputs]
        wanted += [own.get(name) for name in request.parameters]
        with torch.enable_grad():
            outputs = flatten_outputs(call(model, inputs))
            found = gradients([out for _, out in outputs], wanted)
        for place, gradient in zip(self._gradient_places[-len(wanted) :], found, strict=False):
            if gradient is not None and gradient.shape == place.shape:
                place.copy_(gradient)
        attached = any(out.requires_grad for _, out in outputs)
        outputs = [(path, out.detach()) for path, out in outputs]
        described = self._delivered(outputs, given.buffers).outputs
        states = tuple(map(_state, wanted, found))
        return GradientsTried(described, attached, states)


def call(model: nn.Module, inputs: Inputs) -> Any:
    """Call a model as its users do."""
    return model(*inputs.args, **inputs.kwargs)


def with_leaves(inputs: Inputs) -> tuple[Inputs, list[Tensor]]:
    """Return the same arguments with gradients wanted for floating-point tensors, and these."""
    leaves: list[Tensor] = []

    def leaf(tensor: Tensor) -> Tensor:
        if tensor.is_floating_point():
            leaves.append(tensor.detach().clone().requires_grad_())
            return leaves[-1]
        return tensor

    return map_tensors(leaf, inputs), leaves


def gradients(outputs: Sequence[Tensor], leaves: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Return the gradient of a fixed functional of the outputs for each leaf, None without one."""
    attached = [out for out in outputs if out.requires_grad]
    asked = [leaf for leaf in leaves if leaf is not None and leaf.requires_grad]
    if not attached or not asked:
        return [None] * len(leaves)
    found = iter(
        torch.autograd.grad(attached, asked, list(map(_weights, attached)), allow_unused=True)
    )
    return [next(found) if leaf is not None and leaf.requires_grad else None for leaf in leaves]


def _weights(out: Tensor) -> Tensor:
    """Return the weight of each element: of both signs, as sums of rows may not change at all."""
    index = torch.arange(out.numel(), device=out.device, dtype=torch.float64)
    return torch.cos(index).reshape(out.shape).to(out.dtype)


def _state(leaf: Tensor | None, gradient: Tensor | None) -> Literal["given", "missing", "absent"]:
    if leaf is None or not leaf.requires_grad:
        return "absent"
    return "missing" if gradient is None else "given"


def _used(session: UseSession, inputs: Inputs, whose: Whose = "own") -> nn.Module:
    """Return a model after a call, which fills its caches."""
    model = session.build(whose)
    call(model, inputs)
    return model


def _plain_call(session: UseSession, inputs: Inputs) -> Any:
    """Call on these inputs after a call on the problem's own."""
    return call(_used(session, session.first_inputs), inputs)


def _load_state_dict(session: UseSession, inputs: Inputs) -> Any:
    model = _used(session, inputs)
    model.load_state_dict(session.weights["other"])
    return call(model, inputs)


def _deepcopy(session: UseSession, inputs: Inputs) -> Any:
    return call(copy.deepcopy(_used(session, inputs)), inputs)


def _pickle(session: UseSession, inputs: Inputs) -> Any:
    return call(pickle.loads(pickle.dumps(_used(session, inputs))), inputs)


def _save(session: UseSession, inputs: Inputs) -> Any:
    return call(_saved_and_loaded(_used(session, inputs)), inputs)


def _state_dict(session: UseSession, inputs: Inputs) -> Any:
    """Load a module's own state dict into another instance that has been used."""
    source, target = _used(session, inputs), _used(session, inputs, "other")
    target.load_state_dict(_saved_and_loaded(source.state_dict()))
    return call(target, inputs)


def _saved_and_loaded(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def _first_of_two(session: UseSession, inputs: Inputs) -> Any:
    first = _used(session, inputs)
    _used(session, inputs, "other")
    return call(first, inputs)


def _second_of_two(session: UseSession, inputs: Inputs) -> Any:
    first, second = session.build("own"), session.build("other")
    call(first, inputs)
    return call(second, inputs)


def _assigned(session: UseSession, inputs: Inputs) -> Any:
    return _changed_in_place(session, inputs, lambda weight: weight)


def _through_data(session: UseSession, inputs: Inputs) -> Any:
    return _changed_in_place(session, inputs, lambda weight: weight.data)


def _changed_in_place(
    session: UseSession, inputs: Inputs, reached: Callable[[Tensor], Tensor]
) -> Any:
    model = _used(session, inputs)
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    others = session.weights["other"]
    if not all(name in own and own[name].shape == value.shape for name, value in others.items()):
        raise _DoesNotApplyError
    for name, value in others.items():
        reached(own[name]).copy_(value)
    return call(model, inputs)


def _gapped(session: UseSession, inputs: Inputs) -> Any:
    """Call on tensors with a gap after every element."""

    def gapped(tensor: Tensor) -> Tensor:
        return tensor.new_zeros((*tensor.shape, 2)).select(-1, 0).copy_(tensor)

    return call(session.build("own"), map_tensors(gapped, inputs))


def _transposed(session: UseSession, inputs: Inputs) -> Any:
    """Call on tensors with their dimensions in the opposite order in memory."""

    def transposed(tensor: Tensor) -> Tensor:
        order = tuple(reversed(range(tensor.dim())))
        return tensor.permute(order).clone(memory_format=torch.contiguous_format).permute(order)

    return call(session.build("own"), map_tensors(transposed, inputs))


def _moved(session: UseSession, inputs: Inputs) -> Any:
    return call(session.build("moved").to(session.device), inputs)


def _stream(session: UseSession, inputs: Inputs) -> Any:
    """Call on a stream on which the inputs arrive late."""
    model, late = _used(session, inputs), map_tensors(torch.zeros_like, inputs)
    arriving = iter(tensors_of(inputs))
    stream = torch.cuda.Stream(session.device)  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(_DELAY_CYCLES)  # type: ignore[no-untyped-call]
        map_tensors(lambda tensor: tensor.copy_(next(arriving)), late)
        returned = call(model, late)
    stream.synchronize()
    return returned


_TRIALS: dict[Part, Callable[[UseSession, Inputs], Any]] = {
    "call": _plain_call,
    "load_state_dict": _load_state_dict,
    "deepcopy": _deepcopy,
    "pickle": _pickle,
    "save": _save,
    "state_dict": _state_dict,
    "first_of_two": _first_of_two,
    "second_of_two": _second_of_two,
    "assigned": _assigned,
    "through_data": _through_data,
    "gapped": _gapped,
    "transposed": _transposed,
    "moved": _moved,
    "stream": _stream,
}
