"""A memory in other forms: a page to read, and the `statement||count` lines of AdaExplore."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from adaexplore.core import Kind, Rule
from adaexplore.memory import describe_gain, describe_platform

_TITLES: dict[Kind, str] = {
    "compile": "Language and functions",
    "launch": "Launches",
    "resource": "Shared memory, registers and blocks",
    "numerics": "Precision and overflow",
    "silent": "What compiles and is wrong",
    "speed": "What is right and slow",
    "unchecked": "Unchecked: nobody tested these",
}


def as_markdown(rules: Sequence[Rule]) -> str:
    """Return a Markdown page: the statements by kind, then the programs of each rule."""
    lines = ["# Rules of Triton", "", _checked_on(rules), ""]
    for kind, group in _by_kind(rules):
        lines += [f"## {_TITLES[kind]}", ""]
        lines += [_entry(rule) for rule in group]
        lines.append("")
    lines += ["# Witnesses and remedies", ""]
    for rule in filter(lambda rule: rule.is_checked, rules):
        lines += [f"## {rule.name}", "", rule.statement, "", _record(rule), ""]
        for title in ("reference", "witness", "remedy"):
            lines += [
                f"{title.capitalize()}:",
                "",
                "```python",
                getattr(rule, title).strip(),
                "```",
            ]
            lines.append("")
    return "\n".join(lines)


def _entry(rule: Rule) -> str:
    if not rule.is_checked:
        return f"- {rule.statement} (seen {rule.support} times)"
    return f"- [{rule.name}](#{rule.name}): {rule.statement}"


def as_lines(rules: Iterable[Rule]) -> str:
    """Return a line for each rule, `statement||support`, in descending order of support."""
    ordered = sorted(rules, key=lambda rule: (-rule.support, rule.name))
    return "".join(f"{' '.join(rule.statement.split())}||{rule.support:.1f}\n" for rule in ordered)


@dataclass(frozen=True, slots=True)
class MemoryDifference:
    """Names of the rules that two memories do not share as they are."""

    added: Sequence[str]
    removed: Sequence[str]
    changed: Sequence[str]


def difference(old: Iterable[Rule], new: Iterable[Rule]) -> MemoryDifference:
    """Compare two memories by the names and contents of their rules."""
    before, after = ({rule.name: rule for rule in memory} for memory in (old, new))
    return MemoryDifference(
        added=sorted(after.keys() - before.keys()),
        removed=sorted(before.keys() - after.keys()),
        changed=sorted(n for n in before.keys() & after.keys() if before[n] != after[n]),
    )


def _by_kind(rules: Iterable[Rule]) -> Iterable[tuple[Kind, Iterable[Rule]]]:
    kinds = list(_TITLES)
    ordered = sorted(rules, key=lambda rule: (kinds.index(rule.kind), rule.name))
    return groupby(ordered, key=lambda rule: rule.kind)


def _checked_on(rules: Iterable[Rule]) -> str:
    rules = list(rules)
    places = sorted({where for rule in rules for where in rule.holds}, key=str)
    counted = [
        f"{describe_platform(p)} ({sum(p in rule.holds for rule in rules)} hold)" for p in places
    ]
    return (
        "Each rule has a program that fails, or is slow, as it says, and one that does the same "
        f"right. Both were run on: {', '.join(counted) or 'nothing yet'}."
    )


def _record(rule: Rule) -> str:
    """Return how the witness fails, and where the rule holds."""
    signature = rule.signature
    said = ": ".join(filter(None, [signature.type, signature.message]))
    parts = [f"Fails with {signature.status}{f' ({said})' if said else ''}."]
    if rule.kind == "speed":
        parts = [f"Measured: {'; '.join(map(describe_gain, rule.gains)) or 'nowhere'}."]
    for words, places in (("Holds on", rule.holds), ("Gone on", rule.gone)):
        if places:
            parts.append(f"{words} {', '.join(map(describe_platform, places))}.")
    return " ".join(parts)
