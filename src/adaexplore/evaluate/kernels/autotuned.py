"""The configurations that Triton's autotuners timed, from the candidate's process to the judge.

Pins `triton.runtime.autotuner`: of `Autotuner` `run`, `base_fn`, `keys`, `cache` (by the values of
`keys`, then dtypes) and `configs_timings` (milliseconds, the median first; infinite for a
configuration that cannot run), and `Config.all_kwargs`. Triton 3.6 and 3.9 agree in this. Gluon's
kernels have the same autotuner.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adaexplore.core.verdict.evaluation import Autotuning, TriedConfiguration
from adaexplore.evaluate.wire.kernel_messages import TunedConfiguration, TunedKernel

MAX_KERNELS = 4
MAX_CONFIGURATIONS = 12
_MAX_PARAMETERS = 12
_NAME_CHARS = 80
_VALUE_CHARS = 24
_ONE_CTA = ("num_ctas", "1")  # of nearly every configuration


def latest_search(tuner: Any) -> list[TunedKernel]:
    """Return the last search of a Triton autotuner; nothing where the candidate changed its form.

    As many configurations as there are: the judge chooses, in `read_autotunings`.
    """
    try:
        return [_search(tuner)]
    except (AttributeError, TypeError, ValueError, LookupError):
        return []


def _search(tuner: Any) -> TunedKernel:
    timed = [(config, _milliseconds(times)) for config, times in tuner.configs_timings.items()]
    key = next(reversed(tuner.cache), ())
    return TunedKernel(
        name=tuner.base_fn.__name__,
        arguments=", ".join(
            f"{name}={value}" for name, value in zip(tuner.keys, key, strict=False)
        ),
        configurations=tuple(
            TunedConfiguration(_parameters(config), 1000 * ms)
            for config, ms in sorted(timed, key=lambda each: each[1])
            if math.isfinite(ms)
        ),
        tried=len(timed),
    )


def read_autotunings(told: Sequence[TunedKernel]) -> tuple[Autotuning, ...]:
    """Return the searches that a candidate's process tells, as far as they make sense.

    At most `MAX_KERNELS`, the latest, each with its `MAX_CONFIGURATIONS` fastest configurations.
    """
    found = filter(None, map(_autotuning, told))
    latest = {(each.kernel, each.arguments): each for each in found}
    return tuple(latest.values())[-MAX_KERNELS:]


def _autotuning(told: TunedKernel) -> Autotuning | None:
    timed = [c for c in told.configurations if 0 < c.time_us < math.inf]
    if not timed:
        return None
    fastest = sorted(timed, key=lambda each: each.time_us)[:MAX_CONFIGURATIONS]
    names = list(dict.fromkeys(name for each in fastest for name in each.parameters))
    names = names[:_MAX_PARAMETERS]
    tried = max(told.tried, len(timed))
    return Autotuning(
        kernel=_line(told.name, _NAME_CHARS),
        arguments=_line(told.arguments, _NAME_CHARS),
        parameters=tuple(_line(name, _VALUE_CHARS) for name in names),
        configurations=tuple(
            TriedConfiguration(
                tuple(_line(each.parameters.get(name, ""), _VALUE_CHARS) for name in names),
                each.time_us,
            )
            for each in fastest
        ),
        tried=tried,
        refused=tried - len(timed),
    )


def _line(text: str, most: int) -> str:
    return " ".join(text.split())[:most]


def _parameters(config: Any) -> dict[str, str]:
    given = {str(k): str(v)[:_VALUE_CHARS] for k, v in config.all_kwargs().items()}
    return {name: value for name, value in given.items() if (name, value) != _ONE_CTA}


def _milliseconds(times: Any) -> float:
    """Return the median that a benchmark function gives, which may be all that it gives."""
    median = times[0] if isinstance(times, Sequence) else times
    return float(median)
