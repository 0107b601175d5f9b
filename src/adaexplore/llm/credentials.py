"""Keys of the providers: their variables, and messages for a missing or refused key."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module

from adaexplore.core.errors import BadInputError
from adaexplore.llm.options import COMPATIBLE

KEY_VARIABLES = {
    "alibaba": ("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "azure": ("AZURE_OPENAI_API_KEY",),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID"),
    "cohere": ("CO_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "google-cloud": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "heroku": ("HEROKU_INFERENCE_KEY",),
    "huggingface": ("HF_TOKEN",),
    "mistral": ("MISTRAL_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openai-chat": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "snowflake": ("SNOWFLAKE_TOKEN",),
    "together": ("TOGETHER_API_KEY",),
    "vercel": ("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
    "xai": ("XAI_API_KEY",),
    COMPATIBLE: ("ADAEXPLORE_API_KEY",),
}
"""Variables of the keys; the first that is set counts. Other providers have NAME_API_KEY."""

_ERRORS = {
    "anthropic": "AnthropicError",
    "botocore.exceptions": "BotoCoreError",
    "google.auth.exceptions": "GoogleAuthError",
    "openai": "OpenAIError",
}
"""Exceptions of the providers' libraries for missing or unreadable credentials."""


@dataclass(frozen=True, slots=True)
class Key:
    """Key of a provider: the `variable` that holds it, or should hold it if `given` is false."""

    variable: str
    given: bool

    def check(self) -> None:
        """Raise `BadInputError` for a key that no HTTP header can hold, without quoting it."""
        is_path = self.variable.endswith("_CREDENTIALS")
        if self.given and not is_path and not re.fullmatch(r"[!-~]+", os.environ[self.variable]):
            raise BadInputError(
                f"{self.variable} is empty, or contains blanks, line breaks or non-ASCII "
                "characters: set it to the key alone"
            )

    def unusable(self, model: str, error: Exception) -> BadInputError:
        """Return the error for a key that a provider's library cannot use."""
        verb, reason = "mend" if self.given else "set", str(error).strip().partition("\n")[0]
        return BadInputError(
            f"{model}: {verb} {self.variable} in the environment to use this model: {reason}"
        )

    @property
    def described(self) -> str:
        """Name of the key in messages, such as `the key in OPENAI_API_KEY`."""
        return f"the key in {self.variable}" if self.given else "calls without a key"

    @property
    def remedy(self) -> str:
        """Remedy in messages when the provider refuses the key."""
        return "set a valid one" if self.given else f"set {self.variable}"


def key_of(provider: str) -> Key:
    """Return the key of a provider, given or not."""
    variables = KEY_VARIABLES.get(provider, (f"{provider.upper().replace('-', '_')}_API_KEY",))
    given = [variable for variable in variables if variable in os.environ]
    used = next((variable for variable in given if os.environ[variable]), None)
    return Key(used or (given or variables)[0], given=bool(given))


def credential_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions in `_ERRORS` whose libraries are installed."""
    found: list[type[Exception]] = []
    for module, name in _ERRORS.items():
        with suppress(ImportError):
            found.append(getattr(import_module(module), name))
    return tuple(found)
