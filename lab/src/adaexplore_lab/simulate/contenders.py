"""Policies with their settings, as texts such as `uct:reward=published,c=0.5`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from adaexplore.core import BadInputError, Config, PolicyName, parse_settings
from adaexplore.search import POLICIES, Policy


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy with its settings and its own parameters; `name` is the text that asked for it."""

    name: str
    settings: Config
    parameters: tuple[tuple[str, float], ...] = ()

    def policy(self) -> Policy:
        """The policy, with nothing recorded yet."""
        make = partial(POLICIES[self.settings.chosen_policy], self.settings)
        return make(**dict(self.parameters))


def parse_contender(text: str) -> Contender:
    """`NAME` or `NAME:KEY=VALUE,...`, where a key is a setting or a parameter of the policy's own.

    Raises `BadInputError` for a policy, a key or a value that there is not.
    """
    name, _, rest = text.partition(":")
    if name not in get_args(PolicyName):
        known = ", ".join(get_args(PolicyName))
        raise BadInputError(f"--policy {text}: no policy {name!r}; known: {known}")
    own = _parameters(name)
    pairs, parameters = [f"policy={name}"], []
    for pair in filter(None, rest.split(",")):
        key, _, value = pair.partition("=")
        if key in own:
            parameters.append((key, _number(text, key, value, own[key])))
        else:
            pairs.append(pair)
    return Contender(text, parse_settings(pairs), tuple(parameters))


def _parameters(name: str) -> dict[str, float]:
    """Return the parameters of a policy besides the settings, with their defaults."""
    policies: Mapping[Any, Callable[..., Policy]] = POLICIES
    signature = inspect.signature(policies[name])
    return {
        parameter.name: parameter.default
        for parameter in signature.parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def _number(text: str, key: str, value: str, default: float) -> float:
    """The value as a number of the default's type."""
    try:
        number = type(default)(value)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise BadInputError(f"--policy {text}: {key} is {kind}, not {value!r}") from None
    if not number >= 0:
        raise BadInputError(f"--policy {text}: {key} is 0 or more, not {value!r}")
    return number
