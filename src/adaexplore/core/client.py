"""What is asked of a language model, and what comes back."""

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
    """One turn of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation that a model is to continue; the last message is the user's.

    `label` says what it is for ("large", "small.reviser", "repair", ...): it is kept with the call
    and no part of what the model is told.
    """

    messages: tuple[Message, ...]
    label: str = ""

    @property
    def digest(self) -> str:
        """Content hash of what the model is told: sha256 over the messages."""
        told = json.dumps([asdict(m) for m in self.messages], ensure_ascii=False)
        return hashlib.sha256(told.encode()).hexdigest()

    def after(self, reply: str, answer: str, label: str = "") -> Prompt:
        """This conversation with the model's reply and what the user says to it."""
        more = (Message("assistant", reply), Message("user", answer))
        return Prompt((*self.messages, *more), label or self.label)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider counts them; `cost_usd` None where no price is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered.

    `model` is "provider:name" as asked for. `finish` is data, not an error: "truncated" is cut off
    at the model's limit, "refused" and "empty" hold no answer. `latency_s` is the wall time of the
    call that succeeded, `attempts` how many it took.
    """

    text: str
    model: str
    finish: Finish = "complete"
    usage: Usage = field(default_factory=Usage)
    latency_s: float = 0.0
    attempts: int = 1


class ModelOutageError(InfrastructureError):
    """No answer after every retry: the provider is down, or out of reach.

    No fault of the step's: a run pauses and asks again, and burns no step.
    """


class ContextTooLongError(BadInputError):
    """The conversation does not fit the model; a shorter one may."""


class BudgetSpentError(Exception):
    """The next call could exceed the budget; the run ends well and says so."""


class Client(Protocol):
    """One model behind one provider.

    `ask` blocks until there is a reply and may be called from several threads. It raises
    `BadInputError` for what only the user can mend (a missing or wrong key, an unknown model), its
    subclass `ContextTooLongError` for a prompt that the model has no room for, `ModelOutageError`
    for what may pass, `BudgetSpentError` when the budget does not allow the call. Refusals, empty
    and truncated replies are data.
    """

    @property
    def model(self) -> str:
        """Provider and name, as in "openai:gpt-5-mini"."""
        ...

    def ask(self, prompt: Prompt) -> Reply:
        """The model's answer."""
        ...

    def close(self) -> None:
        """Releases connections; the client is not used afterwards."""
        ...
