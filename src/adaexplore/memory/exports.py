"""A memory for others to read: as a page, and as the lines that AdaExplore takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from adaexplore.rule import Kind, Rule, Where

_TITLES: dict[Kind, str] = {
    "compile": "Language and functions",
    "launch": "Launches",
    "resource": "Shared memory, registers and blocks",
    "numerics": "Precision and overflow",
    "silent": "What compiles and is wrong",
}


def as_markdown(rules: Sequence[Rule]) -> str:
    """A page for people and agents: the statements by kind, then what each rule is shown by."""
    lines = ["# Rules of Triton", "", _checked_on(rules), ""]
    for kind, group in _by_kind(rules):
        lines += [f"## {_TITLES[kind]}", ""]
        lines += [f"- [{rule.name}](#{rule.name}): {rule.statement}" for rule in group]
        lines.append("")
    lines += ["# Witnesses and remedies", ""]
    for rule in rules:
        lines += [f"## {rule.name}", "", rule.statement, "", _standing(rule), ""]
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


def as_lines(rules: Iterable[Rule]) -> str:
    """A line for each rule, `statement||support`, those with the most support first."""
    ordered = sorted(rules, key=lambda rule: (-rule.support, rule.name))
    return "".join(f"{' '.join(rule.statement.split())}||{rule.support:.1f}\n" for rule in ordered)


def _by_kind(rules: Iterable[Rule]) -> Iterable[tuple[Kind, Iterable[Rule]]]:
    kinds = list(_TITLES)
    ordered = sorted(rules, key=lambda rule: (kinds.index(rule.kind), rule.name))
    return groupby(ordered, key=lambda rule: rule.kind)


def _checked_on(rules: Iterable[Rule]) -> str:
    rules = list(rules)
    places = sorted({where for rule in rules for where in rule.holds}, key=str)
    counted = [f"{_place(p)} ({sum(p in rule.holds for rule in rules)} hold)" for p in places]
    return (
        "Each rule has a program that fails as it says, and one that does the same right. Both "
        f"were run on: {', '.join(counted) or 'nothing yet'}."
    )


def _standing(rule: Rule) -> str:
    """Where a rule holds, and how its witness fails."""
    signature = rule.signature
    said = ": ".join(filter(None, [signature.type, signature.message]))
    parts = [f"Fails with {signature.status}{f' ({said})' if said else ''}."]
    for words, places in (("Holds on", rule.holds), ("Gone on", rule.gone)):
        if places:
            parts.append(f"{words} {', '.join(map(_place, places))}.")
    return " ".join(parts)


def _place(where: Where) -> str:
    return f"Triton {where.triton} for {where.target}"
