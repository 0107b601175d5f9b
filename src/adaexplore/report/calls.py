"""Totals of model calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CallTotals:
    """Totals of model calls.

    Tokens are counted by the providers; those of the `estimated` calls, which came without a count,
    are estimated. `cost_usd` sums the calls with a known price. The `unpriced` calls have no known
    price, and the calls `by_hand`, answered by a person, have none. `waited_s` sums the wall times
    of the calls.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    by_hand: int = 0
    waited_s: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies together."""
        return self.input_tokens + self.output_tokens


def summed(kind: type[T], parts: Sequence[T]) -> T:
    """Return the sum of some totals, field by field."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: sum(getattr(part, name) for part in parts) for name in names})
