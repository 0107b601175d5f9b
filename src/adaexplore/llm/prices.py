"""Prices of calls by genai-prices, which is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaexplore.llm.options import COMPATIBLE

if TYPE_CHECKING:
    from genai_prices.types import AbstractUsage


def cost_usd(model: str, usage: AbstractUsage) -> float | None:
    """Return the price of `usage` at `model` ("provider:name"), None if unknown."""
    from genai_prices import calc_price

    provider, _, name = model.partition(":")
    if provider == COMPATIBLE:  # the name does not identify the provider
        return None
    try:
        return float(calc_price(usage, name, provider_id=provider).total_price)
    except (LookupError, ValueError):  # no such model; counts that contradict each other
        return None


def list_price_usd(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Return the price of a call of that size without cached tokens, None if unknown."""
    from genai_prices import Usage

    return cost_usd(model, Usage(input_tokens=input_tokens, output_tokens=output_tokens))


def provider_of(name: str) -> str | None:
    """Return the provider whose model is called `name`, None if no price list has it."""
    from genai_prices import Usage, calc_price

    try:
        return str(calc_price(Usage(), name).provider.id) if name else None
    except (LookupError, ValueError):
        return None
