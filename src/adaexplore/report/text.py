"""Numbers and lines as a person reads them, the same in every renderer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adaexplore.feedback import estimate as estimate
from adaexplore.units import duration_s as duration_s
from adaexplore.units import duration_us as duration_us
from adaexplore.units import interval as interval
from adaexplore.units import relative_error as relative_error
from adaexplore.units import speedup as speedup

BASELINE_NAMES = {"eager": "PyTorch eager", "compile": "torch.compile"}
"""How the keys of `Timing.baselines_us` are spelled out."""


def baseline_name(key: str) -> str:
    """A baseline's full name; an unknown key stands for itself."""
    return BASELINE_NAMES.get(key, key)


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
