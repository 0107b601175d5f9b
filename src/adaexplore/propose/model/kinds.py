"""Kinds of problems that languages may have an example for, told from the reference's source."""

from __future__ import annotations

import re

from adaexplore.core.problem import Language
from adaexplore.languages import examples_of

_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("attention", re.compile(r"(?i)attention")),
    ("scan", re.compile(r"(?i)cum(sum|prod|ulative)|selective_scan|mamba|state.?space|_scan\b")),
    ("convolution", re.compile(r"\bconv(_transpose)?[123]d\b|\bConv(Transpose)?[123]d\b")),
)
"""The first whose pattern the source has decides: networks with attention have convolutions too."""


def kind_of(source: str, language: Language) -> str:
    """Return the kind of a problem whose example a language has, "" for the general example."""
    known = examples_of(language)
    return next((kind for kind, names in _KINDS if kind in known and names.search(source)), "")
