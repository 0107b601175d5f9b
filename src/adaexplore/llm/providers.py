"""Clients by the names of models; pydantic-ai is imported when the first client is opened."""

from __future__ import annotations

import difflib
import functools
import os
import re
import threading
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import ModelClient
from adaexplore.llm.credentials import KEY_VARIABLES, credential_errors, key_of
from adaexplore.llm.options import COMPATIBLE, ClientOptions
from adaexplore.llm.prices import provider_of

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.profiles import ModelProfile

BASE_URL_VARIABLE = "ADAEXPLORE_BASE_URL"
_FORMER_NAMES = {"google-gla": "google", "google-vertex": "google-cloud"}


def open_client(
    name: str,
    *,
    options: ClientOptions | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> ModelClient:
    """Open a client for the model called `name`, which is "provider:model".

    Providers are pydantic-ai's: `openai:gpt-5-mini` (Responses API; `openai-chat:` for Chat
    Completions), `anthropic:...`, `google:...`, `azure:...`, `bedrock:...`, `openrouter:...`,
    `ollama:...`, `vllm:...` and others. `openai-compatible:MODEL` is any server with OpenAI's Chat
    Completions API, at `options.base_url` or else at the URL in `ADAEXPLORE_BASE_URL`, with the key
    in `ADAEXPLORE_API_KEY` if it wants one.

    Keys are read from the environment, here and nowhere else. Raises `BadInputError` for an unknown
    name, a missing key (naming its variable), a missing package, and an option that the model would
    ignore.
    """
    options = options or ClientOptions()
    name = name.strip()
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise BadInputError(_incomplete(name))
    if provider != COMPATIBLE and options.base_url:
        raise BadInputError(
            f"{name}: a base URL goes with {COMPATIBLE}:MODEL; for other providers set their own "
            "variable, such as OPENAI_BASE_URL"
        )
    key = key_of(_FORMER_NAMES.get(provider, provider))
    key.check()
    backend = _backend(name, options)
    _refuse_ignored(name, backend.profile, options)

    from adaexplore.llm.client import ProviderClient

    return ProviderClient(
        name,
        backend,
        options,
        slots=_slots(provider, options.concurrency),
        key=key,
        sleep=sleep,
    )


def known_models() -> tuple[str, ...]:
    """Return names of recent models, for help and suggestions; providers accept others too."""
    from pydantic_ai.models import known_model_names

    names = (name for name in known_model_names() if not name.startswith("gateway/"))
    return tuple(sorted(name for name in names if ":" in name))


def _backend(name: str, options: ClientOptions) -> Model:
    provider, _, model = name.partition(":")
    if provider == COMPATIBLE:
        return _compatible(model, options)

    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import infer_provider_class

    provider = _FORMER_NAMES.get(provider, provider)
    try:
        infer_provider_class(provider)
    except ValueError:
        raise BadInputError(_unknown_provider(provider, model)) from None
    except ImportError as error:
        raise BadInputError(_missing_package(provider, error)) from None
    try:
        with warnings.catch_warnings():  # deprecations of pydantic-ai do not concern the user
            warnings.simplefilter("ignore")
            return infer_model(f"{provider}:{model}")
    except ImportError as error:
        raise BadInputError(_missing_package(provider, error)) from None
    except UserError as error:
        raise BadInputError(_unusable(name, error.message)) from None
    except credential_errors() as error:
        raise key_of(provider).unusable(name, error) from None


def _refuse_ignored(name: str, profile: ModelProfile, options: ClientOptions) -> None:
    """Raise `BadInputError` for an option that pydantic-ai would leave out of the calls."""
    thinks = profile.get("supports_thinking") or profile.get("thinking_always_enabled")
    if options.reasoning and not thinks:
        raise BadInputError(
            f"{name}: reasoning={options.reasoning}: this model takes no reasoning effort; leave "
            "it out"
        )
    reasons = options.reasoning or any(
        profile.get(flag) for flag in ("thinking_always_enabled", "thinking_enabled_by_default")
    )
    fixed = profile.get("anthropic_disallows_sampling_settings") or (
        profile.get("openai_supports_reasoning") and reasons
    )
    if options.temperature is not None and fixed:
        why = " while it reasons" if profile.get("openai_supports_reasoning") else ""
        raise BadInputError(
            f"{name}: temperature={options.temperature:g}: this model takes no temperature{why}; "
            "leave it out"
        )


def _compatible(model: str, options: ClientOptions) -> Model:
    url = options.base_url or os.environ.get(BASE_URL_VARIABLE, "")
    if not url:
        raise BadInputError(
            f"{COMPATIBLE}:{model}: no base URL; give one or set {BASE_URL_VARIABLE}, as in "
            "http://localhost:8000/v1"
        )
    if not re.match(r"https?://[^/\s]", url) or not urlsplit(url).hostname:
        raise BadInputError(
            f"{COMPATIBLE}:{model}: the base URL is invalid; it looks like http://localhost:8000/v1"
        )
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    key = os.environ.get(key_of(COMPATIBLE).variable)
    return OpenAIChatModel(
        model, provider=OpenAICompatibleProvider(COMPATIBLE, base_url=url, api_key=key)
    )


def _unusable(name: str, message: str) -> str:
    """Reword pydantic-ai's message for users: of all ways to give a key, name the variable."""
    variable = re.search(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", message)
    if variable:
        return f"{name}: set {variable[1]} in the environment to use this model"
    return f"{name}: {' '.join(message.split())}"


def _missing_package(provider: str, error: ImportError) -> str:
    extra = re.search(r"pydantic-ai-slim\[([\w-]+)\]", str(error))
    package = f"pydantic-ai-slim[{extra[1] if extra else provider}]"
    return f"models of {provider} need a missing package: pip install '{package}'"


def _incomplete(name: str) -> str:
    """Describe a name without provider or model, with suggestions."""
    bare = name.strip(": ")
    owner = provider_of(bare)
    known = {full.partition(":")[2]: full for full in reversed(known_models())}
    near = [f"{owner}:{bare}"] if owner else []
    near += [f"{each}:MODEL" for each in difflib.get_close_matches(bare, _providers(), n=1)]
    near = near or [known[each] for each in difflib.get_close_matches(bare, known, n=3)]
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return (
        f"{name!r} is not the name of a model; write PROVIDER:MODEL as in openai:gpt-5-mini{hint}"
    )


def _unknown_provider(provider: str, model: str) -> str:
    near = difflib.get_close_matches(provider, _providers(), n=3)
    meant = " or ".join(f"{each}:{model}" for each in near)
    hint = f"did you mean {meant}?" if near else f"known: {', '.join(KEY_VARIABLES)} and others"
    return f"unknown provider {provider!r}; {hint}"


def _providers() -> list[str]:
    from typing import get_args

    from pydantic_ai.models import OpenAIChatCompatibleProvider

    compatible = get_args(OpenAIChatCompatibleProvider.__value__)
    named = {name.partition(":")[0] for name in known_models()}
    return sorted({*named, *compatible, *KEY_VARIABLES})


@functools.cache
def _slots(provider: str, concurrency: int) -> threading.Semaphore:  # noqa: ARG001 (a cache key)
    """Return the provider's semaphore, shared by all clients with the same bound."""
    return threading.BoundedSemaphore(concurrency)
