"""The forward of a module as a graph in which runs of neighbouring operations are modules.

A run is what a kernel can take the place of, though no module of the user's bounds it. Shipped
packages carry a copy of this file, so it imports nothing but its neighbours and torch.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import ModuleDict, ModuleList

from adaexplore.runtime.interface import (
    Layer,
    code_of,
    constants_of,
    functions_of,
    layers_of,
    numbers_of,
    tensors_beside,
)
from adaexplore.runtime.values import PLAIN

Kinds = Mapping[str, Any]
"""The arguments of a call by their names, as plain data: constants, and the types of others."""
_MISSING = object()


class Program:
    """A function as text, which copies and pickles carry with them."""

    def __init__(self, text: str) -> None:
        self.text = text
        names: dict[str, Any] = {}
        exec(text, names)
        self.function = names["forward"]

    def __reduce__(self) -> Any:
        return Program, (self.text,)


class OperationRun(nn.Module):
    """Neighbouring operations in the forward of a module, with the modules that they call.

    These are the user's own, under the names that they have in that module.
    """

    def __init__(self, text: str, paths: Sequence[str], home: nn.Module) -> None:
        super().__init__()
        self.text = text
        self.paths = tuple(paths)
        self.program = Program(text)
        self.training = False
        for path in paths:
            *outer, name = path.split(".")
            here: nn.Module = self
            for each in outer:
                inner = here._modules.get(each) or nn.Module().eval()
                here._modules[each] = here = inner
            here._modules[name] = home.get_submodule(path)

    def forward(self, **values: Any) -> Any:
        """Run the operations."""
        return self.program.function(self, **values)

    def extra_repr(self) -> str:
        """Return the operations: runs with other ones are not alike."""
        return self.text


@dataclass(frozen=True, slots=True)
class Variant:
    """The graph for calls of one kind; `free` names the arguments that it takes."""

    kinds: Kinds
    free: tuple[str, ...]
    program: Program


class CutForward:
    """The forward of a module with its runs, or the original for calls that it does not stand for.

    It stands for calls of the traced kinds, without gradients and autocast, as long as the module
    has the children that it was traced with, and both have the same attributes. The kernels in its
    runs are told of other calls. Raises `ValueError` for a module whose forward takes `*args`.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.runs: dict[str, OperationRun] = {}
        self.variants: list[Variant] = []
        self._parameters, self._defaults = _signature(module)
        self._forward = type(module).forward
        self._children = _children_of(module)
        layers = [module, *(child for _, child in self._children)]
        self._constants = [(each, copy.deepcopy(_constants_of(each))) for each in layers]
        self._same = [(each, (*functions_of(each), *tensors_beside(each))) for each in layers]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the graph where it stands for the call, else the original."""
        variant, why = self.chosen(args, kwargs)
        if variant is None:
            for kernel in self.kernels():
                kernel.refuse(why)
            return type(self.module).forward(self.module, *args, **kwargs)
        values = self.values(args, kwargs)
        return variant.program.function(
            self.module, **{name: values[name] for name in variant.free}
        )

    def chosen(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Variant | None, str]:
        """Return the graph for a call, or None and the reason why the original runs."""
        if why := self._why_not():
            return None, why
        variant = self.variant(kinds_of(self.values(args, kwargs)))
        if variant is None or len(args) > len(self._parameters):
            return None, "other kinds of arguments than its forward was cut for"
        return variant, ""

    def values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by their names, with the plain defaults."""
        given = dict(zip(self._parameters, args, strict=False))
        return {**self._defaults, **given, **kwargs}

    def variant(self, kinds: Kinds) -> Variant | None:
        """Return the graph for a kind of call, None where there is none."""
        for variant in self.variants:
            if variant.kinds == kinds:
                return variant
        return None

    def kernels(self) -> list[Any]:
        """Return the forwards that stand in the place of runs."""
        found = [vars(run).get("forward") for run in self.runs.values()]
        return [each for each in found if each is not None]

    def put(self) -> None:
        """Put the graph in the place of the module's forward."""
        vars(self.module).update(self.runs, forward=self)

    def take_out(self) -> None:
        """Give the module its own forward again."""
        own = vars(self.module)
        if own.get("forward") is self:
            for name in (*self.runs, "forward"):
                own.pop(name, None)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, from which `from_json` makes the forward of an equal module."""
        return {
            "variants": [
                {"kinds": each.kinds, "free": list(each.free), "text": each.program.text}
                for each in self.variants
            ],
            "runs": {
                name: {"text": run.text, "paths": list(run.paths)}
                for name, run in self.runs.items()
            },
        }

    @staticmethod
    def from_json(module: nn.Module, data: Mapping[str, Any]) -> CutForward:
        """Return the forward of a module that is equal to the one which the data is of."""
        cut = CutForward(module)
        for each in data["variants"]:
            program = Program(each["text"])
            cut.variants.append(Variant(each["kinds"], tuple(each["free"]), program))
        for name, run in data["runs"].items():
            cut.runs[name] = OperationRun(run["text"], run["paths"], module)
        return cut

    def _why_not(self) -> str:
        module = self.module
        if torch.is_grad_enabled():
            return "gradients are enabled"
        if module.training:
            return "it is in training mode"
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            return "autocast is on"
        if self._forward is not type(module).forward:
            return f"the forward of {type(module).__qualname__} was replaced"
        if not self._has_children():
            return "the module has other layers inside"
        for layer, constants in self._constants:
            for name, value in constants.items():
                now = getattr(layer, name, _MISSING)
                if now is not value and not (type(now) is type(value) and now == value):
                    return f"its {type(layer).__qualname__} has another {name}"
        for layer, attributes in self._same:
            for name, value in attributes:
                if getattr(layer, name, _MISSING) is not value:
                    return f"its {type(layer).__qualname__} has another {name}"
        return ""

    def _has_children(self) -> bool:
        """Return whether the module has the modules inside that it was traced with."""
        children = _children_of(self.module)
        if len(children) != len(self._children):
            return False
        for (name, child), (then, before) in zip(children, self._children, strict=True):
            if name != then or child is not before:
                return False
        for run in self.runs.values():
            for path in run.paths:
                if _inside(self.module, path) is not _inside(run, path):
                    return False
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_forward": code_of(type(self.module))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kind = type(state["module"])
        is_same = code_of(kind) == state["_forward"]  # else another version of the user's library
        self.__dict__.update(state, _forward=kind.forward if is_same else None)


@dataclass(frozen=True, slots=True)
class Cut:
    """Equal modules by their layers, with their cut forward as plain data.

    `places` has their places in the model, for the forward may depend on them.
    """

    layers: tuple[Layer, ...]
    places: tuple[str, ...]
    forward: Mapping[str, Any]

    @staticmethod
    def all_of(cuts: Iterable[CutForward]) -> tuple[Cut, ...]:
        """Return cut forwards as data, those of equal modules as one."""
        places: dict[str, set[str]] = {}
        found: dict[str, Cut] = {}
        for cut in cuts:
            one = Cut(layers_of(cut.module), (), cut.to_json())
            text = json.dumps(one.to_json())
            found[text] = one
            places.setdefault(text, set()).add(place_in_model(cut.module))
        return tuple(
            replace(one, places=tuple(sorted(places[text]))) for text, one in found.items()
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        layers = [layer.to_json() for layer in self.layers]
        return {"layers": layers, "places": list(self.places), "forward": self.forward}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Cut:
        """Inverse of `to_json`, after JSON."""
        layers = tuple(map(Layer.from_json, data["layers"]))
        return Cut(layers, tuple(data["places"]), data["forward"])


def place_in_model(module: nn.Module) -> str:
    """Return the numbers by which a module and those inside know their place in a model."""
    found = [numbers_of(layer) for layer in module.modules()]
    return ", ".join(f"{name} {number}" for each in found for name, number in each.items())


def kinds_of(values: Mapping[str, Any]) -> Kinds:
    """Return the kinds of a call's arguments by their names."""
    return {name: _kind_of(value) for name, value in values.items()}


def _kind_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return "Tensor"
    kind = type(value).__qualname__
    if isinstance(value, PLAIN):
        return [kind, value]
    if isinstance(value, tuple | list):
        return [kind, *[_kind_of(each) for each in value]]
    if type(value) is dict:
        return [kind, *[[_kind_of(key), _kind_of(each)] for key, each in value.items()]]
    return kind


def _signature(module: nn.Module) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the parameters of a forward that may be given by position, and the plain defaults."""
    _, *parameters = inspect.signature(type(module).forward).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise ValueError("*args")
    names = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
    return names, {p.name: p.default for p in parameters if isinstance(p.default, PLAIN)}


def _constants_of(layer: nn.Module) -> dict[str, Any]:
    return {**constants_of(layer), **numbers_of(layer)}


def _inside(module: nn.Module, path: str) -> nn.Module | None:
    """Return the module at a path, None where there is none."""
    here: nn.Module | None = module
    for name in path.split("."):
        here = here._modules.get(name) if here is not None else None
    return here


def _children_of(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the modules that the code of a module can call by names of its own."""
    found = []
    for name, child in module._modules.items():
        if child is not None:
            found.append((name, child))
            if isinstance(child, ModuleList | ModuleDict):
                found += _children_of(child)
    return found
