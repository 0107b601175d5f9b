"""How a client asks."""

from __future__ import annotations

from dataclasses import dataclass, field

from adaexplore.llm.retry import RetryPolicy

COMPATIBLE = "openai-compatible"
"""The provider's name for any server that speaks OpenAI's Chat Completions."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How a client asks; None leaves a choice to the provider.

    `base_url` is where the model of an `openai-compatible:` name is served. `call_timeout_s` bounds
    one attempt at a call, `patience` all of them. `concurrency` bounds the calls in flight at one
    provider, over all clients opened with the same bound. `max_tokens` is for the reply, thinking
    included.
    """

    base_url: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    call_timeout_s: float = 600.0
    concurrency: int = 8
    patience: RetryPolicy = field(default_factory=RetryPolicy)
