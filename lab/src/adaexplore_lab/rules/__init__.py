"""Rules that do not ship, in the form of a memory.

`candidates.toml` beside this module holds pairs of programs whose faster one was not shown to be
faster yet.
"""

from __future__ import annotations

from pathlib import Path

from adaexplore.core import Rule
from adaexplore.memory import load_memory


def candidates() -> list[Rule]:
    """Return the rule candidates that are no rules yet."""
    return load_memory(Path(__file__).parent / "candidates.toml")
