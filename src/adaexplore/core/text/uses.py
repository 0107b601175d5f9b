"""Text of the uses of a winner outside the judge."""

from __future__ import annotations

from collections.abc import Sequence

from adaexplore.core.verdict.uses import DEFECTS, OUTCOMES, Outcome, Use

_WORDS: dict[Outcome, str] = {
    "holds": "holds in use",
    "refuses": "refuses, by an exception",
    "detached": "NO GRADIENTS, without an exception",
    "wrong": "SILENTLY WRONG",
    "hangs": "HANGS",
    "crashes": "CRASHES",
}


def describe_uses(uses: Sequence[Use]) -> list[tuple[Outcome, str]]:
    """Return a line for each use that does not hold, the worst first, and one for those that do."""
    failing = sorted(
        (use for use in uses if use.outcome != "holds"),
        key=lambda use: OUTCOMES.index(use.outcome),
        reverse=True,
    )
    lines = [(use.outcome, f"{_WORDS[use.outcome]}: {_named(use)}") for use in failing]
    holding = [use.name for use in uses if use.outcome == "holds"]
    return [*lines, ("holds", f"{_WORDS['holds']}: {', '.join(holding)}")] if holding else lines


def describe_defects(uses: Sequence[Use]) -> list[str]:
    """Return the lines on uses that fail without an exception."""
    return [line for outcome, line in describe_uses(uses) if outcome in DEFECTS]


def _named(use: Use) -> str:
    return f"{use.name} ({use.detail})" if use.detail else use.name
