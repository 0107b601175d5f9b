"""The arguments of a function that computes a module's output, found by their names.

`bound_kernel` copies this module into candidates: it imports nothing of this package.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

NO_COUNTERPART = "adaexplore bench: the reference has no counterpart of"
"""The beginning of the error of a module that cannot call its function."""

_WHOLE = ("params", "weights", "state_dict")
"""Names of an argument that takes all tensors as a dictionary."""
_LONG = {"w": "weight", "W": "weight", "b": "bias"}
_SETTINGS = (bool, int, float, str, tuple)
_LOOSE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class NamedArguments:
    """The arguments of `function` for a module with this constructor and `forward`.

    `given` are the arguments of the constructor. The inputs of a call come first. Each further
    argument of the function is found by its name: a tensor of the module's state (`conv1_weight`,
    `conv1_w`, a `weight` that one layer alone has, the `bias` beside the `weight` before it), the
    whole state (`params`, `state_dict`), an argument of the constructor (`scaling_factor`), a
    setting of the module or its layers (`stride`). Required ones without a counterpart take the
    tensors that are left, in their order. A function of `*args` alone gets the inputs, the
    parameters and the numbers among the constructor's arguments; its `**kwargs` get nothing.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        constructor: Callable[..., Any],
        forward: Callable[..., Any],
        given: Sequence[Any],
    ) -> None:
        parameters = inspect.signature(function).parameters.values()
        inputs = len(inspect.signature(forward).parameters)
        named = [each for each in parameters if each.kind not in _LOOSE]
        self._wanted = named[inputs:]
        self._lists = len(named) <= inputs and any(
            each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters
        )
        self._given = dict(zip(inspect.signature(constructor).parameters, given, strict=False))
        self._tensors: dict[str, str] = {}
        self._settings: dict[str, Any] = {}
        self._whole: list[str] = []

    def find(self, module: Any) -> None:
        """Find the arguments in a module; raise `TypeError` for one without a counterpart."""
        state = list(_state(module))
        missing = []
        for each in self._wanted:
            if each.name in _WHOLE:
                self._whole.append(each.name)
            elif key := self._tensor(_spelled(each.name), state):
                self._tensors[each.name] = key
            elif (value := self._setting(each.name, module)) is not None:
                self._settings[each.name] = value
            elif each.default is inspect.Parameter.empty:
                missing.append(each.name)
        left = [key for key in state if key not in self._tensors.values()]
        if missing and len(left) != len(missing):
            raise TypeError(f"{NO_COUNTERPART} the argument {missing[0]!r}")
        self._tensors.update(zip(missing, left, strict=False))

    def of_call(self, module: Any, inputs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and the named arguments for the inputs of a call."""
        state = _state(module)
        named = {name: state[key] for name, key in self._tensors.items()}
        named.update(self._settings)
        named.update(dict.fromkeys(self._whole, _WholeState(state)))
        if not self._lists:
            return list(inputs), named
        numbers = [value for value in self._given.values() if isinstance(value, float)]
        return [*inputs, *module.parameters(), *numbers], named

    def _tensor(self, name: str, state: Sequence[str]) -> str | None:
        """Return the key of the tensor of this name, None for none or several."""
        left = {key: key.replace(".", "_") for key in state if key not in self._tensors.values()}
        layers = [key[:-7] for key in self._tensors.values() if key.endswith(".weight")]
        if name == "bias" and layers and f"{layers[-1]}.bias" in left:
            return f"{layers[-1]}.bias"
        unbound = [each for each in self._wanted if each.name not in self._tensors]
        claimed = {_spelled(each.name) for each in unbound} - {name}
        exact = [key for key, flat in left.items() if flat == name]
        ends = [key for key, flat in left.items() if flat.endswith(f"_{name}")]
        heads = [key for key in left if name.endswith(f"_{key}") and left[key] not in claimed]
        free = [key for key in ends if left[key] not in claimed]
        return next((found[0] for found in (exact, ends, free, heads) if len(found) == 1), None)

    def _setting(self, name: str, module: Any) -> Any:
        """Return what the constructor was given, or what all layers that have a setting agree on.

        None where there is no such value.
        """
        if name in self._given:
            return self._given[name]
        values = [getattr(layer, name, None) for layer in module.modules()]
        plain = [_single(value) for value in values if isinstance(value, _SETTINGS)]
        return plain[0] if plain and all(value == plain[0] for value in plain) else None


class _WholeState(dict[str, Any]):
    """All tensors by name, with an error that says so for any other name."""

    def __missing__(self, name: str) -> Any:
        raise TypeError(f"{NO_COUNTERPART} the tensor {name!r}")


def _state(module: Any) -> Mapping[str, Any]:
    """Return the parameters and buffers of a module by name, in the order of its layers."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _spelled(name: str) -> str:
    """Return the name with a short ending written out, such as `conv1_weight` for `conv1_w`."""
    head, _, last = name.rpartition("_")
    return "_".join(part for part in (head, _LONG.get(last, last)) if part)


def _single(value: Any) -> Any:
    """Return the number of a tuple of equal numbers; any other value as it is."""
    return value[0] if isinstance(value, tuple) and len(set(value)) == 1 else value
