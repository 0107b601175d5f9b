"""A memory for others to read: as a page, and as the lines that AdaExplore takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from adaexplore.core.rule import Gain, Kind, Platform, Rule

_TITLES: dict[Kind, str] = {
    "compile": "Language and functions",
    "launch": "Launches",
    "resource": "Shared memory, registers and blocks",
    "numerics": "Precision and overflow",
    "silent": "What compiles and is wrong",
    "speed": "What is right and slow",
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
    counted = [f"{place_name(p)} ({sum(p in rule.holds for rule in rules)} hold)" for p in places]
    return (
        "Each rule has a program that fails, or is slow, as it says, and one that does the same "
        f"right. Both were run on: {', '.join(counted) or 'nothing yet'}."
    )


def _standing(rule: Rule) -> str:
    """Where a rule holds, and what is wrong with its witness."""
    signature = rule.signature
    said = ": ".join(filter(None, [signature.type, signature.message]))
    parts = [f"Fails with {signature.status}{f' ({said})' if said else ''}."]
    if rule.kind == "speed":
        parts = [f"Measured: {'; '.join(map(gain_text, rule.gains)) or 'nowhere'}."]
    for words, places in (("Holds on", rule.holds), ("Gone on", rule.gone)):
        if places:
            parts.append(f"{words} {', '.join(map(place_name, places))}.")
    return " ".join(parts)


def gain_text(gain: Gain) -> str:
    """What a speed rule's remedy gained, with the interval and where."""
    low, high = gain.speedup_ci
    return f"{gain.speedup:.3g}x ({low:.3g} to {high:.3g}) on {place_name(gain.where)}"


def place_name(where: Platform) -> str:
    """A place in words."""
    return f"Triton {where.triton} for {' '.join(filter(None, [where.target, where.gpu]))}"
