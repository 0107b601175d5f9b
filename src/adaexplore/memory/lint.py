"""Lint: rules that a module breaks, found before it is evaluated."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import ndiff

from adaexplore.core.rule import Rule
from adaexplore.memory.kernels import Module
from adaexplore.memory.patterns import lines
from adaexplore.memory.retrieve import applies


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that a module breaks, and the first line where it does."""

    rule: Rule
    line: int


def advice(hit: Hit, source: str) -> str:
    """A hit in words: the line, the rule, and how its programs do it wrong and right."""
    rule = hit.rule
    differing = [
        line
        for line in ndiff(rule.witness.splitlines(), rule.remedy.splitlines())
        if line[:1] in "-+" and line[1:].strip()
    ]
    return "\n".join(
        [
            f"Line {hit.line}: {source.splitlines()[hit.line - 1].strip()}",
            rule.statement,
            "Wrong (-) and right (+) in another kernel:",
            *differing,
        ]
    )


def lint(source: str, rules: Iterable[Rule], triton: str, target: str = "") -> list[Hit]:
    """The rules with a matcher that a module breaks, by line, as they hold on a Triton and target.

    A source that does not parse breaks none: whoever compiles it says more.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = Module(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    hits = []
    for rule in rules:
        if rule.matcher and applies(rule, triton, target):
            found = list(lines(rule.matcher, module))
            hits += [Hit(rule, min(found))] if found else []
    return sorted(hits, key=lambda hit: (hit.line, hit.rule.name))
