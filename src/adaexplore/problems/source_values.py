"""Values of attributes as expressions."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.problems.graph_source import UnwritableError
from adaexplore.problems.source_names import Names

_PLAIN = (type(None), bool, int, str, bytes, complex, type(...))
_TORCH = (torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format)
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    set: ("set([", "])"),
    frozenset: ("frozenset([", "])"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Expression:
    """A value that is written as it stands."""

    text: str


class Values:
    """Expressions of values, over the modules and tensors in `members` and over `names`.

    An object is written once, as a variable: `statements` has the assignments. Of its attributes,
    those in `kept` are written, or all without it.
    """

    def __init__(self, names: Names, members: Mapping[int, str], kept: set[str] | None) -> None:
        self._names = names
        self._members = members
        self._kept = kept
        self._objects: dict[int, str] = {}
        self._open: set[int] = set()
        self.references = 0
        self.statements: list[str] = []

    def text(self, value: Any, name: str = "") -> str:
        """Return the expression of a value that goes by a name; raise `UnwritableError`."""
        if id(value) in self._members:
            self.references += 1
            return self._members[id(value)]
        if isinstance(value, Expression):
            return value.text
        if type(value) in _PLAIN:
            return repr(value)
        if type(value) is float:
            return repr(value) if abs(value) < float("inf") else f'float("{value}")'
        if isinstance(value, _TORCH):
            return _torch_text(value)
        if isinstance(value, Tensor | nn.Module):
            kind = "tensor" if isinstance(value, Tensor) else "module (register it)"
            raise UnwritableError(f"{name}, which holds an unregistered {kind}")
        if isinstance(value, enum.Enum):
            return f"{self._names.expression(type(value))}.{value.name}"
        if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
            return self._function(value, name)
        if id(value) in self._open:
            raise UnwritableError(f"{name}, which holds itself")
        self._open.add(id(value))
        try:
            return self._container(value, name) or self._object(value, name)
        finally:
            self._open.discard(id(value))

    def arguments(self, values: Mapping[str, Any]) -> str:
        """Return keyword arguments with these values."""
        if all(name.isidentifier() for name in values):
            return ", ".join(f"{name}={self.text(value, name)}" for name, value in values.items())
        return f"**{self.text(dict(values))}"

    def written(self, values: Mapping[str, Any], *, whole: bool = False) -> dict[str, Expression]:
        """Return the expressions of the attributes that are kept, with `whole` of all.

        An attribute that some collected code names must have an expression.
        """
        found = {}
        for name, value in values.items():
            if whole or self._kept is None or name in self._kept:
                try:
                    found[name] = Expression(self.text(value, name))
                except UnwritableError:
                    if name in self._names.named and not whole:
                        raise
        return found

    def _function(self, value: Any, name: str) -> str:
        owner = getattr(value, "__self__", None)
        if owner is not None and id(owner) in self._members:
            self.references += 1
            return f"{self._members[id(owner)]}.{value.__name__}"
        return self._names.expression(value, name)

    def _container(self, value: Any, name: str) -> str:
        kind = type(value)
        if isinstance(value, tuple) and (kind is tuple or hasattr(value, "_fields")):
            inside = "".join(f"{self.text(item, name)}, " for item in value)
            inside = inside.removesuffix(" ") if len(value) == 1 else inside.removesuffix(", ")
            return f"({inside})" if kind is tuple else f"{self._names.expression(kind)}({inside})"
        if kind in _BRACKETS:
            inside = ", ".join(self.text(item, name) for item in _ordered(value))
            first, last = _BRACKETS[kind]
            return f"{first}{inside}{last}"
        if isinstance(value, dict) and not hasattr(value, "default_factory"):
            pairs = (f"{self.text(k, name)}: {self.text(v, str(k))}" for k, v in value.items())
            inside = "{" + ", ".join(pairs) + "}"
            return inside if kind is dict else f"{self._names.expression(kind)}({inside})"
        if kind is functools.partial:
            given = [self.text(value.func, name), *(self.text(item, name) for item in value.args)]
            given += [self.arguments(value.keywords)] if value.keywords else []
            return f"{self._names.expression(kind)}({', '.join(given)})"
        if kind in (slice, range):
            return f"{kind.__name__}({value.start!r}, {value.stop!r}, {value.step!r})"
        return ""

    def _object(self, value: Any, name: str) -> str:
        """Return the variable of an object, which is made without its constructor."""
        if id(value) in self._objects:
            return self._objects[id(value)]
        if not hasattr(value, "__dict__") or isinstance(value, dict | list | set):
            raise UnwritableError(f"{name}, a {type(value).__name__}")
        kind = self._names.expression(type(value))
        before = self.references
        attributes = self.written(vars(value))
        if self.references > before:
            raise UnwritableError(f"{name}, an object that holds parts of the module")
        made = ", ".join(filter(None, [kind, self.arguments(attributes)]))
        variable = f"{name.strip('_')}_{len(self._objects) + 1}"
        self.statements.append(f"{variable} = made({made})")
        self._objects[id(value)] = variable
        return variable


def _ordered(values: Any) -> Sequence[Any]:
    return values if isinstance(values, list) else sorted(values, key=repr)


def _torch_text(value: Any) -> str:
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    return str(value) if not isinstance(value, torch.Size) else f"torch.Size({list(value)})"
