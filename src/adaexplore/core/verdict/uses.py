"""The uses of a winner outside the judge: what users do with a module, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Outcome = Literal["holds", "refuses", "detached", "wrong", "hangs", "crashes"]

OUTCOMES: tuple[Outcome, ...] = ("holds", "refuses", "detached", "wrong", "hangs", "crashes")
"""From the best to the worst."""

DEFECTS: frozenset[Outcome] = frozenset({"detached", "wrong", "hangs", "crashes"})
"""Outcomes that a user must know of, because no exception tells."""


@dataclass(frozen=True, slots=True)
class Use:
    """One use, such as "copy.deepcopy", and its outcome.

    A use "holds" if its results are right, and "refuses" if it ends in an exception. "detached"
    means that gradients are missing without an exception, "wrong" that results are. `detail` is one
    line: the exception, or the error; empty where the use holds.
    """

    name: str
    outcome: Outcome
    detail: str = ""


def uses_to_json(uses: Sequence[Use]) -> list[dict[str, Any]]:
    """Return uses as plain data."""
    return [asdict(use) for use in uses]


def uses_from_json(data: Sequence[Mapping[str, Any]]) -> tuple[Use, ...]:
    """Inverse of `uses_to_json`."""
    return tuple(Use(**each) for each in data)
