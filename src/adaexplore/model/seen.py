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
    the tensors of the first call; `opaque` has, for forms with an argument that is no tensor and no
    constant, its type; `operations` is the most that a call ran; `writes` are the forms of calls
    that changed a tensor which they were given, but for those of caches.
    """

    forms: dict[str, Counter[Form]] = field(default_factory=lambda: defaultdict(Counter))
    strides: tuple[tuple[int, ...], ...] = ()
    opaque: dict[Form, str] = field(default_factory=dict)
    operations: int = 0
    writes: set[Form] = field(default_factory=set)


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
            if tree.opaque:
                seen[path].opaque[form] = tree.opaque[0]
            counter.enter(path, form, [t for i, t in enumerate(tensors) if i not in cached])

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


def alike(forms: Mapping[Form, int]) -> list[dict[Form, int]]:
    """Return forms in kinds: those of one kind differ in the sizes of tensors alone."""
    found: dict[object, dict[Form, int]] = {}
    for form, count in forms.items():
        spec, constants, tensors = form
        ranks = tuple((len(shape), dtype, device) for shape, dtype, device in tensors)
        found.setdefault((spec, constants, ranks), {})[form] = count
    return list(found.values())


def _is_opaque(leaf: Any) -> bool:
    return bool(ValueTree(pytree.tree_structure(0), (leaf,)).opaque)


def _is_changed(tensor: Tensor, version: int) -> bool:
    return not tensor.is_inference() and tensor._version != version


class _Operations(TorchDispatchMode):
    """Counts the operations of modules, views left out, and sees writes to their arguments."""

    def __init__(self, seen: Mapping[str, Seen]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._seen = seen
        self._open: list[tuple[str, Form, int, list[tuple[Tensor, int]]]] = []
        self._count = 0

    def enter(self, path: str, form: Form, tensors: Sequence[Tensor]) -> None:
        """Begin a call with these tensors outside of caches."""
        versions = [(t, 0 if t.is_inference() else t._version) for t in tensors]
        self._open.append((path, form, self._count, versions))

    def leave(self, path: str) -> None:
        """End a call."""
        while (opened := self._open.pop())[0] != path:
            pass
        _, form, before, versions = opened
        seen = self._seen[path]
        seen.operations = max(seen.operations, self._count - before)
        if any(_is_changed(t, version) for t, version in versions):
            seen.writes.add(form)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        aliases = [value.alias_info for value in func._schema.returns]
        self._count += not any(alias and not alias.is_write for alias in aliases)
        return func(*args, **(kwargs or {}))
