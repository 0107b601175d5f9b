"""Numbers and lines as a person reads them, the same in every renderer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from adaexplore.evaluation import Estimate

BASELINE_NAMES = {"eager": "PyTorch eager", "compile": "torch.compile"}
"""How the keys of `Timing.baselines_us` are spelled out."""


def baseline_name(key: str) -> str:
    """A baseline's full name; an unknown key stands for itself."""
    return BASELINE_NAMES.get(key, key)


def speedup(ratio: float) -> str:
    """A speedup such as `2.31×`; near 1 it carries a third decimal, where it decides."""
    return f"{_ratio(ratio)}×"


def estimate(guess: Estimate) -> str:
    """An estimate, marked as one: `≈ 12.0 µs on sm_90, an estimate (memory-bound)`."""
    time = duration_us(guess.time_us)
    return f"≈ {time} on {guess.target}, an estimate ({guess.bound_by}-bound)"


def interval(bounds: tuple[float, float]) -> str:
    """A speedup's 95 % interval such as `2.24–2.38`."""
    low, high = bounds
    return f"{_ratio(low)}–{_ratio(high)}"


def duration_us(time_us: float) -> str:
    """A time given in microseconds, in the unit that keeps it short: `312 µs`, `1.24 ms`."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if time_us >= size:
            return f"{_significant(time_us / size)} {unit}"
    return f"{_significant(time_us)} µs"


def duration_s(time_s: float) -> str:
    """A time given in seconds: `0.42 s`, `37 s`, `2 min 05 s`, `1 h 12 min`."""
    if time_s < 10:
        return f"{time_s:.2g} s" if time_s else "0 s"
    seconds = round(time_s)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"


def relative_error(error: float | None) -> str:
    """A relative error such as `1.2e-7`; empty where there is none."""
    if error is None:
        return ""
    if error == 0 or not math.isfinite(error):
        return f"{error:g}"
    mantissa, exponent = f"{error:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def one_line(message: str, limit: int = 0) -> str:
    """`message` without line breaks and control characters, cut to `limit` if positive."""
    printable = "".join(char if char.isprintable() else " " for char in message)
    line = " ".join(printable.split())
    return f"{line[: limit - 1]}…" if 0 < limit < len(line) else line


def facts(mapping: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """A nested mapping as (dotted name, value) rows; floats keep six digits."""
    rows: list[tuple[str, str]] = []
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            rows += facts(value, f"{name}.")
        else:
            rows.append(
                (name, _listed(value) if isinstance(value, list | tuple) else _plain(value))
            )
    return rows


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(_plain, values)) or "none"


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return " ".join(map(_plain, value.values()))
    if isinstance(value, list | tuple):
        return f"[{_listed(value)}]"
    return json.dumps(value, default=str, ensure_ascii=False)


def _ratio(ratio: float) -> str:
    if ratio >= 100:
        return f"{ratio:.0f}"
    if ratio >= 10:
        return f"{ratio:.1f}"
    if 0.9 <= ratio < 1.1:
        return f"{ratio:.3f}"
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def _significant(number: float) -> str:
    """Three significant digits without an exponent."""
    if number >= 100:
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"
