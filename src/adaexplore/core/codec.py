"""Dataclasses as plain JSON data, and back with every type checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
_INTEGERS = 1 << 63


class MalformedError(ValueError):
    """The data does not have the form of the dataclass."""


def write(value: Any) -> Any:
    """Return a dataclass as plain data, for JSON."""
    if is_dataclass(value):
        return {field.name: write(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and any(map(is_dataclass, value[:1])):
        return [write(item) for item in value]
    return value  # times of a block are many: a tuple of numbers is no further looked at


def read(kind: type[_T], data: Any) -> _T:
    """Return the dataclass `kind` that `data` describes.

    Raises `MalformedError` for a missing or unknown field and for a value of another type. A tuple
    is read from a list; an integer is a float too, a boolean is no integer. Integers have 64 bits.
    Lone surrogates, which no file or terminal takes, become question marks.
    """
    value: _T = _read(kind, data)
    return value


def _read(hint: Any, data: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return data
    if origin is Literal:
        return _expect(data in arguments if isinstance(data, str) else False, data, hint)
    if origin in (Union, UnionType):
        return _first_that_fits(arguments, data, hint)
    if origin is tuple:
        _expect(isinstance(data, list | tuple), data, hint)
        kind = arguments[0]
        if kind is float and all(type(item) is float for item in data):
            return tuple(data)  # times of a block are many
        return tuple(_read(kind, item) for item in data)
    if origin in (dict, Mapping):
        _expect(isinstance(data, dict), data, hint)
        return {_read(arguments[0], k): _read(arguments[1], v) for k, v in data.items()}
    if is_dataclass(hint):
        return _read_fields(hint, data)
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return _float(data)
    if hint is float and data in ("inf", "-inf", "nan"):  # JSON has no such numbers
        return float(data)
    _expect(type(data) is hint, data, hint)
    if hint is int:
        return _expect(-_INTEGERS <= data < _INTEGERS, data, hint)
    return data.encode(errors="replace").decode() if hint is str else data


def _read_fields(kind: Any, data: Any) -> Any:
    _expect(isinstance(data, dict), data, kind)
    hints, required = _form(kind)
    _expect(required <= data.keys() <= hints.keys(), data, kind)
    return kind(**{name: _read(hints[name], value) for name, value in data.items()})


@cache
def _form(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """The types of a dataclass's fields, and the names of those without a default."""
    known = get_type_hints(kind)
    own = fields(kind)
    required = (f.name for f in own if f.default is MISSING and f.default_factory is MISSING)
    return {f.name: known[f.name] for f in own}, frozenset(required)


def _first_that_fits(kinds: tuple[Any, ...], data: Any, hint: Any) -> Any:
    for kind in kinds:
        try:
            return None if kind is NoneType and data is None else _read(kind, data)
        except MalformedError:
            continue
    raise MalformedError(f"not a {hint}: {data!r:.80}")


def _float(data: int) -> float:
    try:
        return float(data)
    except OverflowError as error:
        raise MalformedError("an integer beyond a float") from error


def _expect(holds: bool, data: Any, hint: Any) -> Any:
    if not holds:
        raise MalformedError(f"not a {hint}: {data!r:.80}")
    return data
