"""Client for every provider, by pydantic-ai's direct model requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from typing import cast

from anyio.from_thread import start_blocking_portal
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import AgentRunError, ContentFilterError, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import Message, Prompt, Reply, Usage
from adaexplore.llm.credentials import Key, credential_errors
from adaexplore.llm.options import ClientOptions
from adaexplore.llm.outcome import text_and_finish, translated
from adaexplore.llm.prices import cost_usd
from adaexplore.llm.retry import TransientError, with_retries

_SHAPELESS = (AttributeError, IndexError, KeyError, TypeError)
"""Exceptions of the providers' libraries, which do not validate, for malformed answers."""


class ProviderClient:
    """`Client` for one model of a provider.

    Connections belong to an event loop in its own thread, so that `ask` may be called from any
    thread. `slots` bounds the calls in flight; `key` is for messages.
    """

    def __init__(
        self,
        model: str,
        backend: Model,
        options: ClientOptions,
        *,
        slots: threading.Semaphore,
        key: Key,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._backend = backend
        self._options = options
        self._settings = _settings(backend, options)
        self._slots = slots
        self._key = key
        self._sleep = sleep
        self._pending: set[Future[ModelResponse]] = set()
        self._resources = ExitStack()
        self._portal = self._resources.enter_context(start_blocking_portal())
        self._resources.enter_context(self._portal.wrap_async_context_manager(backend))

    @property
    def model(self) -> str:
        """Provider and name, as requested."""
        return self._model

    def ask(self, prompt: Prompt) -> Reply:
        """Return the model's answer, after as many attempts as the options allow."""
        messages = _to_messages(prompt.messages)
        reply, attempts = with_retries(
            lambda: self._attempt(messages),
            self._options.retries,
            name=self._model,
            sleep=self._sleep,
        )
        return replace(reply, attempts=attempts)

    def close(self) -> None:
        """Release the connections and their thread; abort calls of other threads."""
        for future in list(self._pending):
            future.cancel()
        self._resources.close()

    def _attempt(self, messages: list[ModelMessage]) -> Reply:
        with self._slots:
            started = time.monotonic()
            try:
                response = self._request(messages)
                text, finish = text_and_finish(response)
            except ContentFilterError:
                return Reply("", self._model, "refused", latency_s=time.monotonic() - started)
            except AgentRunError as error:
                base_url = self._backend.base_url or ""
                raise translated(error, self._model, base_url, self._key) from None
            except UserError as error:
                raise BadInputError(f"{self._model}: {error.message}") from None
            except credential_errors() as error:
                if getattr(error, "retryable", False):  # google.auth: its server is unreachable
                    raise TransientError(str(error)) from None
                raise self._key.unusable(self._model, error) from None
            latency_s = time.monotonic() - started
        return Reply(text, self._model, finish, self._usage(response), latency_s)

    def _request(self, messages: list[ModelMessage]) -> ModelResponse:
        async def request() -> ModelResponse:
            return await model_request(self._backend, messages, model_settings=self._settings)

        future = self._portal.start_task_soon(request)
        self._pending.add(future)
        try:
            return future.result()
        except _SHAPELESS as error:
            raise TransientError(f"the answer has an unexpected shape: {error}") from error
        finally:
            future.cancel()  # so that an interrupted caller leaves no call in flight
            self._pending.discard(future)

    def _usage(self, response: ModelResponse) -> Usage:
        counted = response.usage
        return Usage(
            counted.input_tokens,
            counted.output_tokens,
            counted.cache_read_tokens,
            cost_usd(self._model, counted),
        )


def _settings(backend: Model, options: ClientOptions) -> ModelSettings:
    """Return the options in pydantic-ai's form, without those the provider does not support."""
    wanted = {
        "request_timeout": options.call_timeout_s,
        "timeout": options.call_timeout_s,
        "max_retries": 0,  # `with_retries` retries
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        "thinking": options.reasoning,
    }
    known = {
        name: value
        for name, value in wanted.items()
        if value is not None and name not in backend.unsupported_settings
    }
    return cast(ModelSettings, known)


def _to_messages(messages: Iterable[Message]) -> list[ModelMessage]:
    """Convert a conversation to pydantic-ai's requests (of one or more parts) and responses."""
    turns: list[ModelMessage] = []
    for message in messages:
        if message.role == "assistant":
            turns.append(ModelResponse(parts=[TextPart(message.text)]))
            continue
        part = (SystemPromptPart if message.role == "system" else UserPromptPart)(message.text)
        last = turns[-1] if turns else None
        if isinstance(last, ModelRequest):
            last.parts = [*last.parts, part]
        else:
            turns.append(ModelRequest(parts=[part]))
    return turns
