"""The form of a value around its tensors, as plain data: collections, and layers of caches.

A static cache of `transformers` has a layer for each layer of a model, in tensors that calls write
to. A module uses one of them, by its `layer_idx`; the form has the tensors of this layer alone.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

PLAIN = (type(None), bool, int, float, str)
_CACHES = "transformers.cache_utils"
_STATIC = "StaticLayer"


class UndescribableError(ValueError):
    """A value of another type than tensors, plain constants and collections; the text names it."""


def is_cache(value: Any) -> bool:
    """Return whether a value is a cache of `transformers` with a list of layers."""
    return type(value).__module__ == _CACHES and isinstance(getattr(value, "layers", None), list)


def static_layer(value: Any, place: int | None) -> Any:
    """Return the layer of a cache at a place, None where it is not of fixed size and filled."""
    if not is_cache(value) or place is None or place >= len(value.layers):
        return None
    layer = value.layers[place]
    if type(layer).__name__ != _STATIC or not layer.is_initialized:
        return None
    return layer


def describe(value: Any, tensors: list[Tensor], place: int | None = None) -> Any:
    """Return the form of a value around its tensors, which are appended to `tensors`.

    `place` is that of a module among the layers of a cache. Raises `UndescribableError` for a value
    that has no form.
    """
    if isinstance(value, Tensor):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, PLAIN):
        return {"value": value}
    if (layer := static_layer(value, place)) is not None:
        return _describe_cache(value, layer, tensors)
    kind = type(value)
    name = "" if kind in (list, tuple, dict) else _name(value)
    if isinstance(value, dict):
        return {"dict": {k: describe(v, tensors, place) for k, v in value.items()}, "kind": name}
    if kind is list:
        return {"list": [describe(v, tensors, place) for v in value]}
    if isinstance(value, tuple):
        return {"tuple": [describe(v, tensors, place) for v in value], "kind": name}
    if is_rebuilt_by_fields(value):
        fields = _fields(value)
        return {"fields": {k: describe(v, tensors, place) for k, v in fields.items()}, "kind": name}
    raise UndescribableError(kind.__name__)


def collect(form: Any, value: Any, tensors: list[Tensor], place: int | None = None) -> bool:
    """Append the tensors of a value that has a form; return False for another form."""
    if "tensor" in form:
        tensors.append(value)
        return isinstance(value, Tensor)
    if "value" in form:
        return type(value) is type(form["value"]) and bool(value == form["value"])
    if "cache" in form:
        layer = static_layer(value, place)
        return layer is not None and _collect_layer(form, layer, tensors)
    if "dict" in form:
        inner = form["dict"]
        if not isinstance(value, dict) or list(value) != list(inner):
            return False
        return all(collect(inner[key], value[key], tensors, place) for key in inner)
    if "fields" in form:
        if _name(value) != form["kind"]:
            return False
        found, inner = _fields(value), form["fields"]
        return all(collect(inner[key], found[key], tensors, place) for key in inner)
    inner = form["list"] if "list" in form else form["tuple"]
    if not isinstance(value, list if "list" in form else tuple) or len(value) != len(inner):
        return False
    return all(collect(one, each, tensors, place) for one, each in zip(inner, value, strict=True))


def rebuild(form: Any, tensors: Sequence[Any], place: int | None = None) -> Any:
    """Return the value of a form with these tensors: the inverse of `describe`."""
    if "tensor" in form:
        return tensors[form["tensor"]]
    if "value" in form:
        return form["value"]
    if "cache" in form:
        return _rebuild_cache(form, tensors, place or 0)
    if "dict" in form:
        values = {key: rebuild(each, tensors, place) for key, each in form["dict"].items()}
        return _kind(form["kind"])(**values) if form["kind"] else values
    if "fields" in form:
        fields = {key: rebuild(each, tensors, place) for key, each in form["fields"].items()}
        return _kind(form["kind"])(**fields)
    if "list" in form:
        return [rebuild(each, tensors, place) for each in form["list"]]
    items = [rebuild(each, tensors, place) for each in form["tuple"]]
    return _kind(form["kind"])(*items) if form["kind"] else tuple(items)


def is_rebuilt_by_fields(value: Any) -> bool:
    """Return True for a dataclass whose constructor takes all fields and does nothing else."""
    return (
        dataclasses.is_dataclass(value)
        and not isinstance(value, type)
        and not hasattr(value, "__post_init__")
        and all(field.init for field in dataclasses.fields(value))
    )


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _describe_cache(cache: Any, layer: Any, tensors: list[Tensor]) -> Any:
    form: dict[str, Any] = {"cache": {}, "plain": {}, "devices": []}
    for name, value in vars(layer).items():
        if isinstance(value, Tensor):
            form["cache"][name] = len(tensors)
            tensors.append(value)
        elif isinstance(value, PLAIN):
            form["plain"][name] = value
        elif isinstance(value, torch.device):
            form["devices"].append(name)
        elif not isinstance(value, torch.dtype):
            raise UndescribableError(f"{type(layer).__name__} with a {type(value).__name__}")
    whole = {name: value for name, value in vars(cache).items() if isinstance(value, PLAIN)}
    return {**form, "whole": whole, "kind": _name(cache), "layer": _name(layer)}


def _collect_layer(form: Any, layer: Any, tensors: list[Tensor]) -> bool:
    for name, value in form["plain"].items():
        if getattr(layer, name, None) != value:
            return False
    for name in form["cache"]:
        tensor = getattr(layer, name, None)
        if not isinstance(tensor, Tensor):
            return False
        tensors.append(tensor)
    return True


def _rebuild_cache(form: Any, tensors: Sequence[Any], place: int) -> Any:
    """Return a cache whose layers at other places are missing."""
    layer, cache = (object.__new__(_kind(form[key])) for key in ("layer", "kind"))
    own = {name: tensors[index] for name, index in form["cache"].items()}
    vars(layer).update(form["plain"], **own)
    for name in form["devices"]:
        setattr(layer, name, next(iter(own.values())).device)
    vars(cache).update(form["whole"], layers=[None] * place + [layer])
    return cache


def _name(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}:{kind.__qualname__}"


@functools.cache
def _kind(name: str) -> Any:
    module, _, path = name.partition(":")
    return functools.reduce(getattr, path.split("."), importlib.import_module(module))
