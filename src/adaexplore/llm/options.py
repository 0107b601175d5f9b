"""Options of a client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from adaexplore.llm.retry import RetryPolicy

COMPATIBLE = "openai-compatible"
"""Provider name of any server with OpenAI's Chat Completions API."""

Reasoning = Literal["minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model thinks before it answers; a provider without a level takes the nearest."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Options of a client; None leaves a choice to the provider.

    `base_url` is the URL of the server for an `openai-compatible:` name. `call_timeout_s` bounds
    one attempt at a call, `retries` all attempts. `concurrency` bounds the calls in flight at one
    provider, over all clients opened with the same bound. `max_tokens` bounds the reply, thinking
    included. `reasoning` is the effort of a model that reasons.
    """

    base_url: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    reasoning: Reasoning | None = None
    call_timeout_s: float = 600.0
    concurrency: int = 8
    retries: RetryPolicy = field(default_factory=RetryPolicy)
