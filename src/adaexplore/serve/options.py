"""The options of a run that a client may give, and their bounds.

No option here names a path, an address or a device of the server: a new field of `Config` is closed
until it is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import changes, make_config

OPEN = frozenset(
    {
        *("language", "target", "precision", "mode", "seed", "inputs_seed", "require_custom"),
        *("allow_waiting", "with_backward", "timeout_s", "memory_gb", "propose_timeout_s"),
        *("steps", "parallel", "tune", "budget", "policy", "reward", "compiler_seeds", "confirm"),
        *("confirm_top", "stop_near", "stop_flat", "stop_flat_gain", "step_kinds", "founders"),
        *("c", "alpha", "p_large", "expand_ratio", "small_limit", "pool_size", "window"),
        *("credit", "recheck", "repeats", "ranking", "compiled", "allocation", "turn_steps"),
        *("first_steps", "model", "temperature", "reply_tokens", "reasoning", "proposer"),
    }
)
"""Fields of `Config` that a client may set."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that one job may take: seconds and GiB for one candidate, steps in flight."""

    timeout_s: float = 600.0
    memory_gb: float = 16.0
    parallel: int = 4


def config_of(options: Mapping[str, Any], bounds: Bounds) -> Config:
    """Return the configuration of a job.

    Raises `BadInputError` for a field that is not open, or a value out of bounds.
    """
    _refuse_closed(options)
    config = make_config(dict(options))
    _refuse_closed(changes(config))  # the text of a policy may set fields too
    for name in ("timeout_s", "propose_timeout_s", "memory_gb", "parallel"):
        most = bounds.timeout_s if name == "propose_timeout_s" else getattr(bounds, name)
        if name not in config.model_fields_set:
            value = min(getattr(config, name), most)
            config = config.model_copy(update={name: value})
        elif getattr(config, name) > most:
            raise BadInputError(f"{name} = {getattr(config, name):g}: at most {most:g} here")
    return config


def _refuse_closed(names: Iterable[str]) -> None:
    closed = sorted(set(names) - OPEN)
    if closed:
        known = ", ".join(sorted(OPEN))
        raise BadInputError(f"{closed[0][:64]!r} is no option of the service; it has {known}")
