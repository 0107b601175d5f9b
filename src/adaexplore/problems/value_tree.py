"""The arguments of a call and its result as tensors and a tree around them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from adaexplore.runtime.values import is_rebuilt_by_fields

Call = tuple[Sequence[Any], Mapping[str, Any]]
"""Arguments and keyword arguments of one example call."""

_PLAIN = (type(None), bool, int, float, complex, str, torch.dtype, torch.device)
_TAKEN = {"self", "torch", "F", "nn", "Path"}


class _Place:
    """The place of a tensor among the leaves of a structure."""

    def __repr__(self) -> str:
        return "tensor"

    def __reduce__(self) -> str:
        return "_TENSOR"  # copies are this very object


_TENSOR = _Place()


@dataclass(frozen=True, slots=True)
class ValueTree:
    """The form of a value around its tensors: a tree whose other leaves are constants."""

    spec: pytree.TreeSpec
    leaves: tuple[Any, ...]

    @staticmethod
    def split(value: Any) -> tuple[list[Tensor], ValueTree]:
        """Return the tensors of a value in order, and its structure."""
        leaves, spec = pytree.tree_flatten(value)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        kept = tuple(_TENSOR if isinstance(leaf, Tensor) else leaf for leaf in leaves)
        return tensors, ValueTree(spec, kept)

    @property
    def count(self) -> int:
        """The number of tensors."""
        return sum(leaf is _TENSOR for leaf in self.leaves)

    def join(self, tensors: Sequence[Any]) -> Any:
        """Return the value with these tensors: the inverse of `split`."""
        left = iter(tensors)
        leaves = [next(left) if leaf is _TENSOR else leaf for leaf in self.leaves]
        return pytree.tree_unflatten(leaves, self.spec)

    @property
    def opaque(self) -> list[str]:
        """The types of leaves that are neither tensors nor plain constants."""
        return [
            type(leaf).__name__
            for leaf in self.leaves
            if leaf is not _TENSOR and not isinstance(leaf, _PLAIN)
        ]


def register_dataclasses(value: Any) -> None:
    """Let pytrees see the tensors of all dataclasses in a value, at any depth."""
    pending = pytree.tree_leaves(value)
    while pending:
        leaf = pending.pop()
        if not is_rebuilt_by_fields(leaf):
            continue
        if [id(each) for each in pytree.tree_leaves(leaf)] == [id(leaf)]:  # not known by now
            pytree.register_dataclass(type(leaf))
        pending += pytree.tree_leaves(leaf)


def bound(
    signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the one form of all calls that mean the same: without defaults, keywords sorted.

    Decorators of libraries add keywords to a call; a default in its place would collide with them.
    """
    bound = signature.bind(*args, **kwargs)
    for name, value in list(bound.arguments.items()):
        default = signature.parameters[name].default
        if type(value) is type(default) and isinstance(value, _PLAIN) and value == default:
            del bound.arguments[name]
    return bound.args, dict(sorted(bound.kwargs.items()))


def tensor_names(signature: inspect.Signature, call: Call) -> list[str]:
    """Return a name for each tensor of a call, after the parameters of `forward`."""
    args, kwargs = bound(signature, *call)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    names: list[str] = []
    for path, leaf in pytree.tree_flatten_with_path((args, kwargs))[0]:
        if isinstance(leaf, Tensor):
            _, place, *deeper = [str(getattr(key, "idx", getattr(key, "key", key))) for key in path]
            if place.isdecimal():
                place = parameters[min(int(place), len(parameters) - 1)].name
            name = re.sub(r"\W", "_", "_".join([place, *deeper]))
            taken = name in names or name in _TAKEN
            names.append(f"{name}_{len(names)}" if taken else name)
    return names
