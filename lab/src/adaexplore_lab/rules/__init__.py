"""Rules that do not ship: data files beside this module, in the form of a memory.

`candidates.toml` holds pairs of programs whose faster one was not shown to be faster yet.
`beliefs.toml` holds statements that untested memories repeat and that are false: a belief's witness
is the program that it forbids, which passes on every supported Triton, and its remedy is the
detour that the belief asks for. `sayings.toml` holds other wordings of rules and beliefs.
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


def beliefs() -> list[Rule]:
    """Return the false statements, each as a rule that no Triton bears out."""
    return load_memory(_FOLDER / "beliefs.toml")


def sayings() -> Mapping[str, Sequence[str]]:
    """Return the wordings of rules and beliefs, by their names."""
    return tomllib.loads((_FOLDER / "sayings.toml").read_text(encoding="utf-8"))
