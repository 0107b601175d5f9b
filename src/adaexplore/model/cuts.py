"""The forward of a module as a graph in which runs of neighbouring operations are modules.

A run is what a kernel can take the place of, though no module of the user's bounds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import ModuleDict, ModuleList

from adaexplore.runtime.interface import code_of, constants_of, functions_of, tensors_beside
from adaexplore.runtime.values import PLAIN

Kinds = Mapping[str, Any]
"""The arguments of a call by their names, without the values of tensors."""
_MISSING = object()


class Program:
    """A function as text, which copies and pickles carry with them."""

    def __init__(self, text: str) -> None:
        self.text = text
        names: dict[str, Any] = {}
        exec(text, names)
        self._function = names["forward"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._function(*args, **kwargs)

    def __reduce__(self) -> Any:
        return Program, (self.text,)


class OperationRun(nn.Module):
    """Neighbouring operations in the forward of a module, with the modules that they call.

    These are the user's own, under the names that they have in that module. `kind` names the class
    of the module and the operations.
    """

    def __init__(self, kind: str, program: Program, modules: nn.Module, paths: Sequence[str]):
        super().__init__()
        self.kind = kind
        self.text = program.text
        self.paths = tuple(paths)
        self.program = program
        self._modules.update(modules._modules)
        self.training = False

    def forward(self, **values: Any) -> Any:
        """Run the operations."""
        return self.program(self, **values)

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
    has the children and the attributes that it was traced with.
    """

    def __init__(self, module: nn.Module, parameters: Sequence[str], defaults: Mapping[str, Any]):
        self.module = module
        self.runs: dict[str, OperationRun] = {}
        self.variants: list[Variant] = []
        self.refused = 0
        self._parameters = tuple(parameters)
        self._defaults = dict(defaults)
        self._forward = type(module).forward
        self._children = _children_of(module)
        self._constants = constants_of(module)
        self._same = (*functions_of(module), *tensors_beside(module))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the graph where it stands for the call, else the original."""
        values = self.values(args, kwargs)
        variant = self.variant(kinds_of(values)) if self._is_as_traced() else None
        if variant is None or len(args) > len(self._parameters):
            if not torch.compiler.is_compiling():
                self.refused += 1
            return type(self.module).forward(self.module, *args, **kwargs)
        return variant.program(self.module, **{name: values[name] for name in variant.free})

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

    def put(self) -> None:
        """Put the graph in the place of the module's forward."""
        vars(self.module).update(self.runs, forward=self)

    def take_out(self) -> None:
        """Give the module its own forward again."""
        own = vars(self.module)
        if own.get("forward") is self:
            for name in (*self.runs, "forward"):
                own.pop(name, None)

    def _is_as_traced(self) -> bool:
        module = self.module
        if torch.is_grad_enabled() or module.training or self._forward is not type(module).forward:
            return False
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            return False
        for name, value in self._constants.items():
            now = getattr(module, name, _MISSING)
            if now is not value and not (type(now) is type(value) and now == value):
                return False
        for name, value in self._same:
            if getattr(module, name, _MISSING) is not value:
                return False
        children = _children_of(module)
        if len(children) != len(self._children):
            return False
        return all(
            name == then and child is before
            for (name, child), (then, before) in zip(children, self._children, strict=True)
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_forward": code_of(type(self.module))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kind = type(state["module"])
        is_same = code_of(kind) == state["_forward"]  # else another version of the user's library
        self.__dict__.update(state, _forward=kind.forward if is_same else None)


def kinds_of(values: Mapping[str, Any]) -> Kinds:
    """Return the kinds of a call's arguments by their names."""
    return {name: _kind_of(value) for name, value in values.items()}


def _kind_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Tensor
    if isinstance(value, PLAIN):
        return type(value), value
    if isinstance(value, tuple | list):
        return [type(value), *[_kind_of(each) for each in value]]
    if type(value) is dict:
        return {key: _kind_of(each) for key, each in value.items()}
    return type(value)


def _children_of(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the modules that the code of a module can call by names of its own."""
    found = []
    for name, child in module._modules.items():
        if child is not None:
            found.append((name, child))
            if isinstance(child, ModuleList | ModuleDict):
                found += _children_of(child)
    return found


def modules_in(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the modules of a model with their names, and the runs that are in place."""
    for path, module in model.named_modules():
        yield path, module
        forward = vars(module).get("forward")
        if isinstance(forward, CutForward):
            for name, run in forward.runs.items():
                yield f"{path}.{name}".lstrip("."), run


@contextmanager
def in_place(cuts: Iterable[CutForward]) -> Iterator[None]:
    """Put cut forwards in their places, and take them out afterwards."""
    cuts = list(cuts)
    for cut in cuts:
        cut.put()
    try:
        yield
    finally:
        for cut in cuts:
            cut.take_out()
