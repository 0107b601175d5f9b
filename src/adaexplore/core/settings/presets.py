"""Named sets of settings: `--preset NAME`, with `--set` and options to change single values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PresetName = Literal["adaexplore", "adaexplore-l2", "adaexplore-l3", "adaexplore-adapt"]


@dataclass(frozen=True, slots=True)
class Preset:
    """Values of fields of `Config`, with their meaning in one line."""

    meaning: str
    values: Mapping[str, Any] = field(repr=False)


_SEARCH: Mapping[str, Any] = {
    "steps": 50,
    "policy": "uct",
    "c": 0.3,
    "expand_ratio": 1.0,
    "alpha": 0.0,
    "p_large": 0.2,
    "small_limit": 2,
    "pool_size": 5,
    "extra_max": 0,
    "extra_p": 0.5,
    "window": 5,
    "reward": "published",
    "compiled": "module",
    "ranking": "eager",
    "repeats": "step",
    "credit": "measured",
    "recheck": False,
    "published_judge": True,
    "reviser": True,
    "repair": False,
    "p_strategy": 0.0,
    "p_contrast": 0.0,
    "tried": False,
    "outlines": False,
    "contents": "published",
    "memory_threshold": 3,
    "ask_again": False,
    "unpatched": "repeat",
    "lint": False,
    "stop_near": 0.0,
    "stop_flat": 0,
}
"""The published search with its parameters for KernelBench Level 2 (docs/search.md)."""

_LEVEL_2 = Preset("AdaExplore as published (arXiv 2604.16625), Level 2", _SEARCH)

PRESETS: Mapping[str, Preset] = {
    "adaexplore": _LEVEL_2,
    "adaexplore-l2": _LEVEL_2,
    "adaexplore-l3": Preset(
        "AdaExplore as published (arXiv 2604.16625), Level 3", {**_SEARCH, "expand_ratio": 0.5}
    ),
    "adaexplore-adapt": Preset(
        "AdaExplore as published (arXiv 2604.16625), the searches that build its memory",
        {
            **_SEARCH,
            "steps": 25,
            "c": 0.25,
            "alpha": 1.0,
            "p_large": 0.25,
            "extra_max": 3,
            "memory": "none",
            "learning": "published",
            "grow": True,
            "reviser": False,
        },
    ),
}
