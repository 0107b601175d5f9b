"""Prompts to a language model, replies, and the contract of a client."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from adaexplore.core.errors import BadInputError, InfrastructureError

Role = Literal["system", "user", "assistant"]
Finish = Literal["complete", "truncated", "refused", "empty", "too_long"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """Conversation for a model to continue; the last message is the user's.

    `label` names the purpose ("large", "small.reviser", "repair", ...). It is kept with the
    exchange and is not sent to the model.
    """

    messages: tuple[Message, ...]
    label: str = ""

    @property
    def digest(self) -> str:
        """Content hash: sha256 over the messages, without the label."""
        sent = json.dumps([asdict(m) for m in self.messages], ensure_ascii=False)
        return hashlib.sha256(sent.encode()).hexdigest()

    def after(self, reply: str, answer: str, label: str = "") -> Prompt:
        """Return this conversation, continued by the model's reply and the user's answer."""
        more = (Message("assistant", reply), Message("user", answer))
        return Prompt((*self.messages, *more), label or self.label)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider counts them; `cost_usd` is None without a known price."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of a model.

    `model` is "provider:name" as requested. `finish` is data, not an error: a "truncated" reply was
    cut off at the model's limit, "refused", "empty" and "too_long" hold no answer. `latency_s` is
    the wall time of the call that succeeded, `attempts` the number of calls it took.
    """

    text: str
    model: str
    finish: Finish = "complete"
    usage: Usage = field(default_factory=Usage)
    latency_s: float = 0.0
    attempts: int = 1


class ModelOutageError(InfrastructureError):
    """No answer after every retry: the provider is down or unreachable.

    The run pauses and asks again; no step is spent.
    """


class ContextTooLongError(BadInputError):
    """Conversation that exceeds the model's context window; a shorter one may fit."""


class BudgetSpentError(Exception):
    """The next call could exceed the budget; the run ends in order and reports it."""


class ModelClient(Protocol):
    """One model behind one provider.

    `ask` blocks until there is a reply and may be called from several threads. It raises
    `BadInputError` for errors that only the user can mend (a missing or wrong key, an unknown
    model), its subclass `ContextTooLongError` for a prompt beyond the model's context window,
    `ModelOutageError` for failures that may pass, and `BudgetSpentError` if the budget does not
    allow the call. Refusals, empty and truncated replies are data.
    """

    @property
    def model(self) -> str:
        """Provider and name, as in "openai:gpt-5-mini"."""
        ...

    def ask(self, prompt: Prompt) -> Reply:
        """Return the model's answer."""
        ...

    def close(self) -> None:
        """Release the connections; the client is not used afterwards."""
        ...
