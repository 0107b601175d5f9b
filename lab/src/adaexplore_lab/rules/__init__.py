"""Rules that do not ship: data files beside this module, in the form of a memory.

`candidates.toml` holds pairs of programs whose faster one was not shown to be faster yet.
`sayings.toml` holds other wordings of rules, and of the package's beliefs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from adaexplore.core import Rule
from adaexplore.memory import load_memory

_FOLDER = Path(__file__).parent


def candidates() -> list[Rule]:
    """Return the rule candidates that are no rules yet."""
    return load_memory(_FOLDER / "candidates.toml")


def sayings() -> Mapping[str, Sequence[str]]:
    """Return the wordings of rules and beliefs, by their names."""
    return tomllib.loads((_FOLDER / "sayings.toml").read_text(encoding="utf-8"))
