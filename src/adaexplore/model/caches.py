"""Static caches of `transformers` as structures of tensors, which calls of a model write to."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree

from adaexplore.runtime.interface import place_of
from adaexplore.runtime.values import is_cache, static_layer

_known: set[type] = set()


class GrowingCache:
    """A cache that is no argument of tensors: it grows, is empty, or serves several layers."""


def register_caches(value: Any) -> None:
    """Let pytrees see the tensors of all static caches in a value."""
    for leaf in pytree.tree_leaves(value, is_leaf=is_cache):
        if is_cache(leaf) and _is_static(leaf) and type(leaf) not in _known:
            _known.add(type(leaf))
            pytree.register_pytree_node(
                type(leaf), _flatten, _unflatten, flatten_with_keys_fn=_flatten_with_keys
            )


def narrowed(module: nn.Module, call: tuple[Any, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a module's call with the layers of caches that it uses alone."""
    place = place_of(module)

    def narrow(leaf: Any) -> Any:
        layer = static_layer(leaf, place)
        if not is_cache(leaf):
            return leaf
        if layer is None or place is None:
            return GrowingCache()
        own = copy.copy(leaf)
        own.layers = [None] * place + [layer]
        return own

    args, kwargs = pytree.tree_map(narrow, call, is_leaf=is_cache)
    return args, kwargs


def indices_in_caches(value: Any) -> Iterator[int]:
    """Yield the places among the tensors of a value that lie in caches."""
    count = 0
    for leaf in pytree.tree_leaves(value, is_leaf=is_cache):
        if is_cache(leaf):
            tensors = [t for t in pytree.tree_leaves(leaf) if isinstance(t, Tensor)]
            yield from range(count, count + len(tensors))
            count += len(tensors)
        elif isinstance(leaf, Tensor):
            count += 1


def _is_static(cache: Any) -> bool:
    return all(static_layer(cache, place) is not None for place in range(len(cache.layers)))


@dataclass(frozen=True, slots=True)
class _LayerForm:
    kind: type
    tensors: tuple[str, ...]
    rest: Mapping[str, Any]


class _CacheForm:
    """A cache around its tensors; equal for layers that are equal but for their place."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache
        self.layers = {i: _layer_form(each) for i, each in enumerate(cache.layers) if each}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CacheForm) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self.cache).__name__}{list(self.layers.values())}"


def _layer_form(layer: Any) -> _LayerForm:
    named = vars(layer).items()
    tensors = tuple(name for name, value in named if isinstance(value, Tensor))
    return _LayerForm(type(layer), tensors, {k: v for k, v in named if k not in tensors})


def _flatten(cache: Any) -> tuple[list[Any], _CacheForm]:
    form = _CacheForm(cache)
    tensors = [
        getattr(cache.layers[i], name) for i, each in form.layers.items() for name in each.tensors
    ]
    return tensors, form


def _flatten_with_keys(cache: Any) -> tuple[list[tuple[Any, Any]], _CacheForm]:
    tensors, form = _flatten(cache)
    keys: list[Any] = [
        pytree.MappingKey(name) for each in form.layers.values() for name in each.tensors
    ]
    return [*zip(keys, tensors, strict=True)], form


def _unflatten(tensors: Any, form: Any) -> Any:
    left = iter(tensors)
    cache = copy.copy(form.cache)
    cache.layers = [None] * len(form.cache.layers)
    for i, each in form.layers.items():
        layer = object.__new__(each.kind)
        vars(layer).update(each.rest, **{name: next(left) for name in each.tensors})
        cache.layers[i] = layer
    return cache
