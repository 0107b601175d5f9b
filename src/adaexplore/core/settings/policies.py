"""Names of the policies and the parameters of each, as texts such as `beam:width=3`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from adaexplore.core.errors import BadInputError

PolicyName = Literal[
    "uct",
    "widening",
    "ps",
    "irs",
    "irl",
    "irb",
    "irle",
    "beam",
    "islands",
    "polca",
    "archive",
    "stepwise",
]
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class PolicyParameter:
    """A number that one policy alone has: its default, bounds and meaning."""

    default: float
    meaning: str
    least: float = 0.0
    most: float = math.inf


PARAMETERS: Mapping[str, Mapping[str, PolicyParameter]] = {
    "widening": {
        "factor": PolicyParameter(
            1.0, "a node has fewer children than factor * visits ** exponent"
        ),
        "exponent": PolicyParameter(0.5, "see factor", most=1.0),
    },
    "beam": {
        "width": PolicyParameter(2, "kernels that are kept", least=1),
        "branch": PolicyParameter(4, "children of each of them in a generation", least=1),
    },
    "islands": {
        "islands": PolicyParameter(5, "populations that evolve apart", least=1),
        "exploration": PolicyParameter(0.2, "probability of any member as parent", most=1.0),
        "exploitation": PolicyParameter(0.7, "probability of an elite as parent", most=1.0),
        "archive": PolicyParameter(100, "best kernels of the search that are elites", least=1),
        "interval": PolicyParameter(50, "steps from migration to migration", least=1),
        "migration": PolicyParameter(0.1, "share of an island that migrates", most=1.0),
    },
    "polca": {
        "epsilon": PolicyParameter(0.02, "distance within which the faster of two kernels is kept"),
        "candidates": PolicyParameter(5, "best kernels of the queue, visited in turn", least=1),
        "memory": PolicyParameter(512, "capacity of the queue", least=1),
    },
    "archive": {
        "top": PolicyParameter(
            10, "fastest kernels in the archive, beside those of cells", least=1
        ),
        "reach": PolicyParameter(1.0, "weight of the gain expected of a step"),
    },
    "stepwise": {
        "items": PolicyParameter(5, "items of a plan at most", least=1),
        "tries": PolicyParameter(2, "attempts at an item before it is skipped", least=1),
        "loss": PolicyParameter(
            0.02, "share of the speed that an item may cost and still be kept", most=0.5
        ),
    },
}
"""The parameters of each policy that has some; a policy's own defaults are the same."""


def parse_policy(text: str) -> tuple[str, dict[str, float]]:
    """Return the name and the parameters of `NAME` or `NAME:KEY=VALUE,...`.

    Raises `BadInputError` for a policy, a parameter or a value that there is not.
    """
    name, pairs = split_policy(text)
    if name not in (AUTO, *get_args(PolicyName)):
        known = ", ".join((AUTO, *get_args(PolicyName)))
        raise BadInputError(f"policy {text}: no policy {name!r}; known: {known}")
    own = PARAMETERS.get(name, {})
    found = {}
    for key, value in pairs.items():
        if key not in own:
            has = f"{name} has {', '.join(own) or 'none of its own'}"
            raise BadInputError(f"policy {text}: {key}: no such setting or parameter; {has}")
        found[key] = _number(text, key, value, own[key])
    return name, found


def split_policy(text: str) -> tuple[str, dict[str, str]]:
    """Return the name and the pairs after it, unchecked; `BadInputError` for one without `=`."""
    name, _, rest = text.partition(":")
    pairs = {}
    for pair in filter(None, rest.split(",")):
        key, sign, value = pair.partition("=")
        if not sign:
            raise BadInputError(f"policy {text}: {pair!r}: write it as key=value")
        pairs[key.strip()] = value.strip()
    return name.strip(), pairs


def join_policy(name: str, pairs: Mapping[str, str]) -> str:
    """Return the text that `split_policy` takes apart."""
    return f"{name}:{','.join(f'{key}={value}' for key, value in pairs.items())}" if pairs else name


def _number(text: str, key: str, value: str, parameter: PolicyParameter) -> float:
    """Return a value as a number of the default's type, within the bounds."""
    whole = isinstance(parameter.default, int)
    try:
        number = int(value) if whole else float(value)
    except ValueError:
        kind = "a whole number" if whole else "a number"
        raise BadInputError(f"policy {text}: {key} is {kind}, not {value!r}") from None
    least, most = parameter.least, parameter.most
    if not least <= number <= most or math.isinf(number):
        bounds = f"{least:g} or more" if math.isinf(most) else f"from {least:g} to {most:g}"
        raise BadInputError(f"policy {text}: {key} is {bounds}, not {value!r}")
    return number
