"""Totals of model calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallTotals:
    """What some calls used.

    Tokens are as the providers count them, and estimated for the `estimated` calls, which came
    without a count. `cost_usd` is that of the calls whose price is known; of the `unpriced` it is
    not, and those `by_hand`, which a person answered, have none. `waited_s` sums the wall times of
    the calls.
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
        """Those of prompts and replies together."""
        return self.input_tokens + self.output_tokens
