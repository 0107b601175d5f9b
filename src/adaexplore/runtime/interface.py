"""The interface of a module as plain data: its structure, the form of a call, and its result.

Shipped packages carry a copy of this file, so it imports nothing but the standard library and
torch.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.runtime.values import PLAIN, UndescribableError, collect, describe, rebuild

_OWN = frozenset(vars(nn.Module()))
_PLACES = ("layer_idx", "layer_id")
_LEFT_OUT = frozenset({*_PLACES, "_is_hf_initialized"})
_COMPARED = ("path", "kind", "library", "code", "constants", "functions", "state", "children")
_MOST_VALUES = 64
"""Numbers and texts in a collection that is compared at every call; larger ones are not."""


Write = tuple[int, int | None]
"""The index of a tensor of a call that is written to, and the dimension of the rows that are.

Values of rows are two tensors, their index and the rows; without a dimension, the whole tensor.
"""


@dataclass(frozen=True, slots=True)
class Layer:
    """A module inside a module: its path, its class with the digest of its code, its constants.

    `library` is the Python module of a class of torch, empty for other classes. `state` has the
    name, shape and dtype of each tensor of its own, None for a tensor that is left out; `functions`
    has the attributes that can be called, by their own names.
    """

    path: str
    kind: str
    library: str
    code: str
    constants: Mapping[str, Any]
    functions: Mapping[str, str]
    state: Mapping[str, Any]
    children: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        constants = {name: _packed(value) for name, value in self.constants.items()}
        return {**asdict(self), "constants": constants}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Layer:
        """Inverse of `to_json`, after JSON."""
        constants = {name: _unpacked(value) for name, value in data["constants"].items()}
        return Layer(**{**data, "constants": constants, "children": tuple(data["children"])})


@dataclass(frozen=True, slots=True)
class Interface:
    """The structure of a module, of the arguments of a call, and of its result.

    `parameters` are those of `forward` that may be given by position, `defaults` the plain defaults
    of all. `given` describes each argument of a call by its parameter's name, the first
    `positional` of them by position. `returned` describes the result. `modes` has the flag
    `training` of each mode in which the result is the same. With `flat`, a candidate takes the
    tensors alone. Of tensors that a call writes to, such as those of a cache, a candidate returns
    new values after its other results.
    """

    layers: tuple[Layer, ...]
    parameters: tuple[str, ...]
    defaults: Mapping[str, Any]
    given: Mapping[str, Any]
    positional: int
    returned: Any
    modes: tuple[bool, ...]
    flat: bool
    writes: tuple[Write, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        return {**asdict(self), "layers": [layer.to_json() for layer in self.layers]}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Interface:
        """Inverse of `to_json`, after JSON."""
        layers = tuple(map(Layer.from_json, data["layers"]))
        lists = {name: tuple(data[name]) for name in ("parameters", "modes")}
        writes = tuple((index, dim) for index, dim in data["writes"])
        return Interface(**{**data, **lists, "layers": layers, "writes": writes})


def interface_of(
    module: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result: Any,
    *,
    flat: bool,
    writes: tuple[Write, ...] = (),
) -> Interface:
    """Describe a module by a call and its result; `flat` and `writes` as in `Interface`.

    The module is called once more, in its other mode, and left as it was.

    Raises `UndescribableError` for arguments and results that are not plain.
    """
    signature = inspect.signature(type(module).forward)
    _, *parameters = signature.parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [*zip(names, args, strict=False), *sorted(kwargs.items())]
    defaults = {
        name: p.default
        for name, p in signature.parameters.items()
        if p.default is not p.empty and isinstance(p.default, PLAIN)
    }
    if len(named) < len(args) + len(kwargs):
        raise UndescribableError("*args")
    tensors: list[Tensor] = []
    place = place_of(module)
    given = {name: describe(value, tensors, place) for name, value in named}
    outputs: list[Tensor] = []
    returned = describe(result, outputs)
    modes = _modes(module, args, kwargs, (returned, outputs))
    return Interface(
        layers_of(module), tuple(names), defaults, given, len(args), returned, modes, flat, writes
    )


def _modes(
    module: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    expected: tuple[Any, list[Tensor]],
) -> tuple[bool, ...]:
    """Return the mode of a module, and the other one too where the result is the same in it."""
    own = module.training
    before = [(layer, layer.training) for layer in module.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    returned, outputs = expected
    again: list[Tensor] = []
    module.train(not own)
    try:
        with torch.random.fork_rng(), torch.no_grad():
            is_same = collect(returned, module(*args, **kwargs), again)
    except (RuntimeError, TypeError, ValueError):  # such as batch norm of one value
        is_same = False
    finally:
        is_same = is_same and all(map(torch.equal, again, outputs))
        for layer, training in before:
            layer.training = training
        for buffer, value in buffers:
            if not torch.equal(buffer, value):
                is_same = False
                with torch.no_grad():
                    buffer.copy_(value)
    return (own, not own) if is_same else (own,)


def place_of(module: nn.Module) -> int | None:
    """Return the number of the layer of a cache that a module uses; None for none or several."""
    found = {i for layer in module.modules() if type(i := vars(layer).get("layer_idx")) is int}
    return found.pop() if len(found) == 1 else None


def layers_of(module: nn.Module) -> tuple[Layer, ...]:
    """Return a module and all modules inside it, as data."""
    return tuple(
        Layer(
            path,
            type(layer).__qualname__,
            library_of(type(layer)),
            code_of(layer.__class__),
            constants_of(layer),
            {name: _name_of(value) for name, value in functions_of(layer)},
            {
                name: None if t is None else [list(t.shape), str(t.dtype)]
                for name, t in (*layer._parameters.items(), *layer._buffers.items())
            },
            tuple(layer._modules),
        )
        for path, layer in module.named_modules(remove_duplicate=False)
    )


def difference(found: Sequence[Layer], wanted: Sequence[Layer], name: str) -> str:
    """Return the first difference between a module of this name and a verified one, or nothing."""
    for layer, other in zip(found, wanted, strict=False):
        for what in _COMPARED:
            if getattr(layer, what) != getattr(other, what):
                place = f"{name}.{layer.path}".strip(".") or other.kind
                return f"{place} has other {what} than verified"
    return "" if len(found) == len(wanted) else "it has other layers inside than verified"


def constants_of(layer: nn.Module) -> dict[str, Any]:
    """Return the plain attributes of a module, without its mode and its place in a model.

    They are numbers, texts and None, also in small collections.
    """
    return {
        name: value
        for name, value in vars(layer).items()
        if name not in _OWN and name not in _LEFT_OUT and 0 <= _count(value) <= _MOST_VALUES
    }


def numbers_of(layer: nn.Module) -> dict[str, Any]:
    """Return the attributes of a module that number its place in a model."""
    own = vars(layer)
    return {name: own[name] for name in _PLACES if isinstance(own.get(name), int)}


def _count(value: Any) -> int:
    """Return the number of plain values in a value, negative where something else is in it."""
    if isinstance(value, PLAIN):
        return 1
    if type(value) is dict and all(type(key) is str for key in value):
        value = list(value.values())
    if type(value) not in (tuple, list):
        return -1
    counts = [_count(each) for each in value]
    return sum(counts) if min(counts, default=0) >= 0 else -1


def _packed(value: Any) -> Any:
    """Return a constant for JSON, which has no tuples; one of plain values is a list there."""
    if isinstance(value, PLAIN) or (
        type(value) is tuple and all(isinstance(each, PLAIN) for each in value)
    ):
        return value
    if type(value) is dict:
        return {"dict": {key: _packed(each) for key, each in value.items()}}
    return {type(value).__name__: [_packed(each) for each in value]}


def _unpacked(value: Any) -> Any:
    """Inverse of `_packed`, after JSON."""
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    [(kind, inner)] = value.items()
    if kind == "dict":
        return {key: _unpacked(each) for key, each in inner.items()}
    items = [_unpacked(each) for each in inner]
    return items if kind == "list" else tuple(items)


def tensors_beside(layer: nn.Module) -> tuple[tuple[str, Tensor], ...]:
    """Return the tensors of a module that are neither parameters nor buffers, with their names."""
    return tuple(
        (name, value)
        for name, value in vars(layer).items()
        if isinstance(value, Tensor) and name not in _OWN
    )


def functions_of(layer: nn.Module) -> tuple[tuple[str, Any], ...]:
    """Return the attributes of a module that can be called.

    Without a `forward` of its own and the runs of operations that this calls.
    """
    runs = getattr(vars(layer).get("forward"), "runs", {})
    return tuple(
        (name, value)
        for name, value in vars(layer).items()
        if callable(value) and name not in _OWN and name != "forward" and name not in runs
    )


def _name_of(function: Any) -> str:
    if isinstance(function, functools.partial):
        return f"{_name_of(function.func)} with {function.args} and {function.keywords}"
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def library_of(kind: type | FunctionType) -> str:
    """Return the Python module of a class or function of torch, empty for others."""
    return kind.__module__ if kind.__module__.partition(".")[0] == "torch" else ""


def code_of(kind: type) -> str:
    """Return a digest of the code of a class outside torch, empty where its text is not known.

    The code is the text of the class, of its base classes, of functions that were put into them
    afterwards, and of the functions that all of these name.
    """
    return _code_of(kind, tuple(f for base in kind.__mro__ for f in _functions_in(base)))


@functools.cache
def _code_of(kind: type, now: tuple[FunctionType, ...]) -> str:
    """Return the digest; `now` are the functions of the class, which may be replaced."""
    del now
    texts: dict[str, str] = {}
    pending: list[Any] = [base for base in kind.__mro__ if base is not object]
    while pending:
        each = pending.pop()
        name = each.__qualname__
        if name in texts or library_of(each):
            continue
        try:
            texts[name] = ast.dump(ast.parse(textwrap.dedent(inspect.getsource(each))))
        except (OSError, TypeError, SyntaxError):
            return ""
        pending += _functions_named(each)
        if isinstance(each, type):
            pending += [f for f in _functions_in(each) if not _is_own(f, each)]
    whole = "".join(texts[name] for name in sorted(texts))
    return hashlib.sha256(whole.encode()).hexdigest() if whole else ""


def _functions_named(source: Any) -> list[FunctionType]:
    """Return the functions of the same module that the code of a class or function names."""
    plain = _functions_in(source) if isinstance(source, type) else [inspect.unwrap(source)]
    named = [f.__globals__.get(name) for f in plain for name in f.__code__.co_names]
    return [f for f in named if isinstance(f, FunctionType)]


def _functions_in(kind: type) -> list[FunctionType]:
    """Return the functions of a class, without their decorators."""
    return [inspect.unwrap(f) for f in vars(kind).values() if isinstance(f, FunctionType)]


def _is_own(function: FunctionType, kind: type) -> bool:
    place = kind.__module__, f"{kind.__qualname__}.{function.__name__}"
    return (function.__module__, function.__qualname__) == place


def tensors_of_call(
    interface: Interface, args: Sequence[Any], kwargs: Mapping[str, Any], place: int | None = None
) -> list[Tensor] | None:
    """Return the tensors of a call in order; None for a call of another form.

    `place` is that of the module among the layers of a cache.
    """
    if len(args) > len(interface.parameters):
        return None
    values = dict(zip(interface.parameters, args, strict=False))
    values.update(kwargs)
    for name in values:
        if name not in interface.given and not (
            name in interface.defaults and _is_same(values[name], interface.defaults[name])
        ):
            return None
    tensors: list[Tensor] = []
    for name, form in interface.given.items():
        if name not in values and name not in interface.defaults:
            return None
        value = values[name] if name in values else interface.defaults[name]
        if not collect(form, value, tensors, place):
            return None
    return tensors


def write_back(
    writes: Sequence[Write], tensors: Sequence[Tensor], results: Sequence[Tensor]
) -> list[Tensor]:
    """Write the new values that come after the results of a call, and return the results."""
    count = len(results) - sum(1 if dim is None else 2 for _, dim in writes)
    values = list(results[count:])
    for index, dim in writes:
        if dim is None:
            tensors[index].copy_(values.pop(0))
        else:
            tensors[index].index_copy_(dim, values.pop(0), values.pop(0))
    return list(results[:count])


def call_of(
    interface: Interface,
    tensors: Sequence[Tensor],
    *,
    flat: bool = False,
    place: int | None = None,
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call with these tensors, by position and by name.

    With `flat`, for a candidate, which may take the tensors alone; else for the module.
    """
    if flat and interface.flat:
        return list(tensors), {}
    values = {name: rebuild(form, tensors, place) for name, form in interface.given.items()}
    names = list(values)
    return (
        [values[name] for name in names[: interface.positional]],
        {name: values[name] for name in names[interface.positional :]},
    )


def _is_same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)
