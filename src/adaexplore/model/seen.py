"""The calls that the modules of a model get: their forms, their operations, and examples."""

from __future__ import annotations

import inspect
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from adaexplore.model.caches import indices_in_caches, narrowed
from adaexplore.model.calls import ModelCall
from adaexplore.model.hooks import hooked
from adaexplore.problems.optimized import form_of
from adaexplore.problems.value_tree import Call, ValueTree, bound

Form = tuple[Any, ...]
"""What two calls share that differ in the values of tensors alone."""


@dataclass(slots=True)
class Seen:
    """The calls of one module: `forms` counts each form by the model's call; `strides` are those of
    the tensors of the first call; `opaque` are the types of arguments that are no tensors and no
    constants; `operations` is the most that a call ran; `writes` are the indices of the tensors
    that a call changed, but for those of caches; `caches` is true where it changed those.
    """

    forms: dict[str, Counter[Form]] = field(default_factory=lambda: defaultdict(Counter))
    strides: tuple[tuple[int, ...], ...] = ()
    opaque: tuple[str, ...] = ()
    operations: int = 0
    writes: set[int] = field(default_factory=set)
    caches: bool = False


def look(model: nn.Module, calls: Sequence[ModelCall]) -> dict[str, Seen]:
    """Run every call of a model once and return the calls of its modules by their paths."""
    seen: dict[str, Seen] = defaultdict(Seen)
    for call in calls:
        counter = _Operations(seen)

        def enter(
            path: str,
            module: nn.Module,
            args: tuple[Any, ...],
            kwargs: dict[str, Any],
            counter: _Operations = counter,
            name: str = call.name,
        ) -> None:
            tensors, tree, form, cached = _split(module, args, kwargs)
            seen[path].forms[name][form] += 1
            seen[path].strides = seen[path].strides or tuple(t.stride() for t in tensors)
            seen[path].opaque = seen[path].opaque or tuple(tree.opaque)
            counter.enter(path, tensors, cached)

        with counter, hooked(model, enter, counter.leave):
            call.copied().run(model)
    return dict(seen)


def examples(
    model: nn.Module, calls: Sequence[ModelCall], paths: Collection[str]
) -> Mapping[str, dict[Form, Call]]:
    """Run every call and return copies of the first call of each form of the modules at `paths`."""
    found: dict[str, dict[Form, Call]] = {path: {} for path in paths}

    def enter(path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if path not in found:
            return
        tensors, tree, form, _ = _split(module, args, kwargs)
        if form not in found[path]:
            found[path][form] = tree.join([t.detach().clone() for t in tensors])

    for call in calls:
        with hooked(model, enter):
            call.copied().run(model)
    return found


def _split(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Tensor], ValueTree, Form, set[int]]:
    """Return the tensors of a call, its structure, its form, and which tensors lie in caches."""
    args, kwargs = narrowed(module, (args, kwargs))
    with suppress(TypeError, ValueError):  # the call itself says more about its arguments
        args, kwargs = bound(inspect.signature(module.forward), args, kwargs)
    tensors, tree = ValueTree.split((args, kwargs))
    constants = tuple(repr(leaf) for leaf in tree.leaves if not _is_opaque(leaf))
    form = (str(tree.spec), constants, tuple(map(form_of, tensors)))
    return tensors, tree, form, set(indices_in_caches((args, kwargs)))


def _is_opaque(leaf: Any) -> bool:
    return bool(ValueTree(pytree.tree_structure(0), (leaf,)).opaque)


def _is_changed(tensor: Tensor, version: int) -> bool:
    return not tensor.is_inference() and tensor._version != version


class _Operations(TorchDispatchMode):
    """Counts the operations of modules, views left out, and sees writes to their arguments."""

    def __init__(self, seen: Mapping[str, Seen]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._seen = seen
        self._open: list[tuple[str, int, list[tuple[Tensor, int]], set[int]]] = []
        self._count = 0

    def enter(self, path: str, tensors: Sequence[Tensor], cached: set[int]) -> None:
        """Begin a call; `cached` are the indices of the tensors in caches."""
        versions = [(t, 0 if t.is_inference() else t._version) for t in tensors]
        self._open.append((path, self._count, versions, cached))

    def leave(self, path: str) -> None:
        """End a call."""
        while (opened := self._open.pop())[0] != path:
            pass
        _, before, versions, cached = opened
        seen = self._seen[path]
        seen.operations = max(seen.operations, self._count - before)
        writes = {i for i, (t, version) in enumerate(versions) if _is_changed(t, version)}
        seen.writes |= writes - cached
        seen.caches = seen.caches or bool(writes & cached)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        aliases = [value.alias_info for value in func._schema.returns]
        self._count += not any(alias and not alias.is_write for alias in aliases)
        return func(*args, **(kwargs or {}))
