"""Kinds of problems that languages may have an example for."""

from __future__ import annotations

import re

from adaexplore.core.problem import Problem
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.labels import OVERHEAD_BOUND
from adaexplore.languages import examples_of

_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("scan", re.compile(r"(?i)cum(sum|prod|ulative)|selective_scan|mamba|state.?space|_scan\b")),
    ("attention", re.compile(r"(?i)attention")),
    ("convolution", re.compile(r"\bconv(_transpose)?[123]d\b|\bConv(Transpose)?[123]d\b")),
)
"""The first whose pattern the source has decides.

State-space models speak of attention heads, and models with attention have convolutions.
"""

_NETWORK = 16
"""Layers from which a model is a network: KernelBench's blocks have up to 10, its networks 20."""


def kind_of(problem: Problem, facts: ReferenceFacts) -> str:
    """Return the kind of a problem whose example its language has, "" for the general example.

    The reference's source decides, but for networks: what many layers lose lies between them.
    """
    known = examples_of(problem.language)
    kinds = (kind for kind, names in _KINDS if kind in known and names.search(problem.source))
    named = next(kinds, "")
    if "network" not in known or not _is_network(problem, facts):
        return named
    return "network" if named == "convolution" or OVERHEAD_BOUND in facts.labels else named


def _is_network(problem: Problem, facts: ReferenceFacts) -> bool:
    """Return True for many layers, which a candidate may leave to a library, without gradients."""
    checks = problem.checks
    return facts.layers >= _NETWORK and not (checks.require_custom or checks.backward)
