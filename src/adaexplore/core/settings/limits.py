"""The limits of a run, and the text of a budget that states them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from adaexplore.core.errors import BadInputError

_UNITS = {
    "usd": ("usd", 1),
    "tok": ("tokens", 1),
    "ktok": ("tokens", 1_000),
    "mtok": ("tokens", 1_000_000),
    "step": ("steps", 1),
    "steps": ("steps", 1),
    "s": ("seconds", 1),
    "min": ("seconds", 60),
    "h": ("seconds", 3600),
}
_EXAMPLES = "write it as 2usd, 500ktok, 1.5Mtok, 100steps, 30min or 2h, or several as 2usd,100steps"


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The most that a run may use in all; None where there is no limit."""

    usd: float | None = None
    tokens: int | None = None
    steps: int | None = None
    seconds: float | None = None


def parse_budget(text: str) -> BudgetLimits:
    """Parse limits such as "2usd", "500ktok", "30min", or several separated by commas.

    Raises `BadInputError`, with examples, for any other text.
    """
    limits: dict[str, float] = {}
    for part in text.split(","):
        found = re.fullmatch(
            r"(\d{1,12}(?:\.\d{1,12})?)\s*([a-z]+)", part.strip().lower(), re.ASCII
        )
        if not found or found[2] not in _UNITS:
            raise BadInputError(f"budget {part.strip()!r} is not understood; {_EXAMPLES}")
        name, unit = _UNITS[found[2]]
        amount = float(found[1]) * unit
        if amount <= 0 or (name in ("steps", "tokens") and amount != int(amount)):
            whole = "a whole number" if amount else "more than nothing"
            raise BadInputError(f"budget {part.strip()!r} has to be {whole}; {_EXAMPLES}")
        if name in limits:
            raise BadInputError(f"budget {text!r} limits {name} twice; {_EXAMPLES}")
        limits[name] = int(amount) if name in ("steps", "tokens") else amount
    return BudgetLimits(**limits)  # type: ignore[arg-type]
