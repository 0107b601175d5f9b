"""Where providers' keys come from, and what it means when one is missing or refused."""

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
"""Where providers' keys are read from: the first that is set counts. Others have NAME_API_KEY."""

_ERRORS = {
    "anthropic": "AnthropicError",
    "botocore.exceptions": "BotoCoreError",
    "google.auth.exceptions": "GoogleAuthError",
    "openai": "OpenAIError",
}
"""What the providers' libraries raise where their credentials are missing or cannot be read."""


@dataclass(frozen=True, slots=True)
class Key:
    """A provider's key: the `variable` it is in, or if `given` is false, the one to put it in."""

    variable: str
    given: bool

    def check(self) -> None:
        """Raises `BadInputError` for a key that no HTTP header can hold; says no part of it."""
        is_path = self.variable.endswith("_CREDENTIALS")
        if self.given and not is_path and not re.fullmatch(r"[!-~]+", os.environ[self.variable]):
            raise BadInputError(
                f"{self.variable} is empty, or holds blanks, line breaks or letters beyond ASCII: "
                "set it to the key alone"
            )

    def unusable(self, model: str, error: Exception) -> BadInputError:
        """What to raise where a provider's library can make no use of it."""
        verb, reason = "mend" if self.given else "set", str(error).strip().partition("\n")[0]
        return BadInputError(
            f"{model}: {verb} {self.variable} in the environment to use this model: {reason}"
        )

    @property
    def described(self) -> str:
        """The key in a message, such as `the key in OPENAI_API_KEY`."""
        return f"the key in {self.variable}" if self.given else "calls without a key"

    @property
    def remedy(self) -> str:
        """What to do where the provider refuses it."""
        return "set a valid one" if self.given else f"set {self.variable}"


def key_of(provider: str) -> Key:
    """Where a provider's key is, or should be."""
    variables = KEY_VARIABLES.get(provider, (f"{provider.upper().replace('-', '_')}_API_KEY",))
    given = [variable for variable in variables if variable in os.environ]
    used = next((variable for variable in given if os.environ[variable]), None)
    return Key(used or (given or variables)[0], given=bool(given))


def credential_errors() -> tuple[type[Exception], ...]:
    """The errors in `_ERRORS` of the libraries that are installed."""
    found: list[type[Exception]] = []
    for module, name in _ERRORS.items():
        with suppress(ImportError):
            found.append(getattr(import_module(module), name))
    return tuple(found)
