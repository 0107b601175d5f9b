"""Translation of a provider's answers and failures."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from urllib.parse import urlsplit

from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
)
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import known_model_names

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import ContextTooLongError, Finish
from adaexplore.llm.credentials import Key
from adaexplore.llm.retry import TransientError

_MAY_PASS = frozenset({408, 409, 425, 429})
_TOO_LONG = re.compile(r"context.(length|window|size)|(prompt|input) is too long", re.IGNORECASE)
"""Messages of gateways and local servers that pydantic-ai does not recognise."""
_SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
_SHORTEST_SECRET = 8
_QUOTED = 200


def text_and_finish(response: ModelResponse) -> tuple[str, Finish]:
    """Return the text of an answer and its finish.

    A refusal that the provider sends apart from the text replaces it. Raises `TransientError` for
    an answer that the provider itself marks as an error.
    """
    refusal = (response.provider_details or {}).get("refusal", "")
    # Lone surrogates can be written neither to a file nor to a database.
    text = (response.text or str(refusal)).encode("utf-8", "replace").decode()
    match response.finish_reason:
        case "content_filter":
            return text, "refused"
        case "length":
            return text, "truncated"
        case "error":
            raise TransientError("the provider ended its answer with an error")
    return text, "complete" if text.strip() else "empty"


def translated(error: AgentRunError, model: str, base_url: str, key: Key) -> Exception:
    """Return the exception to raise in place of a provider's failure, with one line of text.

    A `TransientError` for a failure that may pass, a `BadInputError` for one that the user has to
    mend.
    """
    match error:
        case ModelContextWindowExceededError():
            return ContextTooLongError(f"the prompt is too long for {model}: {quoted(error)}")
        case ModelHTTPError(status_code=400) if _TOO_LONG.search(error.message):
            return ContextTooLongError(f"the prompt is too long for {model}: {quoted(error)}")
        case ModelHTTPError(status_code=413):
            return ContextTooLongError(f"the prompt is too long for {model} (413)")
        case ModelQuotaExceededError():
            return BadInputError(f"{model}: no credit is left on the account of {key.described}")
        case ModelAuthenticationError() | ModelHTTPError(status_code=401 | 403):
            # The provider's message is left out, because it may repeat part of the key.
            status = f" ({error.status_code})" if isinstance(error, ModelHTTPError) else ""
            return BadInputError(
                f"{model}: the provider refuses {key.described}{status}; {key.remedy}"
            )
        case ModelNotFoundError() | ModelHTTPError(status_code=404):
            near = [name for name in get_close_matches(model, known_model_names()) if name != model]
            hint = f"did you mean {' or '.join(near)}?" if near else "see its list of models"
            return BadInputError(f"{model}: no such model at {host(base_url)}; {hint}")
        case ModelHTTPError(status_code=status) if status in _MAY_PASS or status >= 500:
            reason = f"{host(base_url)} answered {status}: {quoted(error)}"
            return TransientError(reason, error.retry_after)
        case ModelHTTPError(status_code=status):
            return BadInputError(
                f"{model}: the provider refuses the request ({status}): {quoted(error)}"
            )
        case ModelRequestRejectedError():
            return BadInputError(f"{model}: the provider refuses the request: {quoted(error)}")
        case ModelRequestTimeout():
            return TransientError(f"{host(base_url)} did not answer within {error.timeout:g} s")
    asked = error.retry_after if isinstance(error, ModelAPIError) else None
    return TransientError(f"{host(base_url)}: {quoted(error)}", asked)


def quoted(error: AgentRunError) -> str:
    """Return the provider's message as one short line, with secrets masked."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        body = inner.get("message") if isinstance(inner, dict) else inner
    message = str(body or error.message)
    for name, value in os.environ.items():
        secret = value.strip()
        if name.endswith(_SECRET_NAMES) and len(secret) >= _SHORTEST_SECRET:
            message = message.replace(secret, "***")
    line = " ".join("".join(c if c.isprintable() else " " for c in message).split())
    return line if len(line) <= _QUOTED else f"{line[: _QUOTED - 1]}…"


def host(base_url: str) -> str:
    """Return the host and port of a URL for a message, without its password."""
    parts = urlsplit(base_url)
    name = parts.hostname or "the provider"
    return f"{name}:{parts.port}" if parts.port else name
