"""What becomes of rules where a version of Triton has other names for its functions.

A remedy that compiled elsewhere fails here at a name that is gone. Where the failure tells the new
name, or the memory knows it, the programs are tried with it. That gives a rule about the name, and
keeps the rule that the programs were for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from adaexplore.core.rule import Rule, Signature
from adaexplore.core.verdict.evaluation import Evaluation, Failed
from adaexplore.memory.check import CheckedRule, Checker, is_right

_MOST = 8
"""Names that one program may have changed."""

_TOLD = re.compile(
    r"[`'\"]?([\w.]+)[`'\"]? (?:has been|have been|is|was|were) "
    r"(?:removed|renamed|moved|deprecated)\b"
    r"[^\n]*?\b(?:call|use|in favou?r of|to|by)\b (?:the )?[`'\"]?([A-Za-z_][\w.]*)"
)
_MISSING = re.compile(r"has no attribute ['`](\w+)['`]|name ['`](\w+)['`] is not defined")
_OF_A_VERSION = re.compile(r"-\d+-\d+-\d+\w*$")
_WORD = re.compile(r"[A-Za-z_]\w*|\S")


@dataclass(frozen=True, slots=True)
class Renamed:
    """What renames made of a rule that does not hold here as it is.

    `found` are rules about the names, which hold here. `under` is the rule with programs for this
    version as it was checked here, None where there are none.
    """

    found: tuple[CheckedRule, ...] = ()
    under: CheckedRule | None = None


def follow(checked: CheckedRule, checker: Checker, memory: Sequence[Rule]) -> Renamed:
    """Try the programs of a rule under the names that this version has.

    Nothing is tried where another rule of the memory says the same and holds here. Raises
    `InfrastructureError` where the checker's machinery is gone.
    """
    rule, here = checked.rule, checker.where.as_of(checked.rule.kind)
    if checked.true or rule.kind == "speed" or not (rule.holds or rule.gone):
        return Renamed()
    if any(other.statement == rule.statement and here in other.holds for other in memory):
        return Renamed()
    known = dict(pair[::-1] for one in memory if (pair := renamed_in(one)))
    names: dict[str, str] = {}
    failed, now = checked.remedy, rule
    while len(names) < _MOST and (pair := _told(failed, now.remedy, known)):
        if pair[1] in names:
            break  # back to a name that is gone
        names[pair[0]] = pair[1]
        now = _under(rule, names)
        failed = checker.verdict(now, now.remedy)
        if is_right(rule, failed):
            break
    if not names or not is_right(rule, failed):
        return Renamed()
    said = {one.statement for one in memory if here in one.holds}
    told = [about for name in names if (about := _about(name, rule, names)).statement not in said]
    found = [checked for about in told if (checked := checker.observe(about)).true]
    version = re.sub(r"\W+", "-", checker.where.triton).strip("-")
    name = f"{_OF_A_VERSION.sub('', rule.name)}-{version}"
    under = replace(now, name=name, holds=(), gone=())
    return Renamed(tuple(found), checker.check(under))


def renamed_in(rule: Rule) -> tuple[str, str] | None:
    """Return the name that a rule's programs differ in, and the one in its place."""
    before, after = _WORD.findall(rule.witness), _WORD.findall(rule.remedy)
    if len(before) != len(after):
        return None
    pairs = {(one, other) for one, other in zip(before, after, strict=True) if one != other}
    [pair] = pairs if len(pairs) == 1 else [None]
    return pair if pair and all(name.isidentifier() for name in pair) else None


def _told(failed: Evaluation, source: str, known: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the name that fails and the one to take, as the failure or the memory tells."""
    if not isinstance(failed, Failed) or failed.status not in ("compile_error", "runtime_error"):
        return None
    said = f"{failed.reason}\n{failed.detail}"
    pairs = [(m[1].rpartition(".")[2], m[2].rpartition(".")[2]) for m in _TOLD.finditer(said)]
    missing = [m[1] or m[2] for m in _MISSING.finditer(said)]
    pairs += [(name, known[name]) for name in missing if name in known]
    return next((pair for pair in pairs if pair[0] != pair[1] and _has(source, pair[0])), None)


def _about(name: str, rule: Rule, names: Mapping[str, str]) -> Rule:
    """Return a rule about one name, with all others as they are here."""
    others = {old: new for old, new in names.items() if old != name}
    new = names[name]
    return Rule(
        name=f"{name}-is-{new}".replace("_", "-").lower(),
        kind="compile",
        statement=f"There is no `{name}`: it is `{new}`.",
        reference=rule.reference,
        witness=_under(rule, others).remedy,
        remedy=_under(rule, names).remedy,
        signature=Signature("compile_error"),
        source="failure",
        topics=(name, new),
        language=rule.language,
    )


def _under(rule: Rule, names: Mapping[str, str]) -> Rule:
    """Return a rule whose programs have other names."""
    return replace(
        rule, witness=_with_names(rule.witness, names), remedy=_with_names(rule.remedy, names)
    )


def _with_names(source: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        source = re.sub(rf"\b{re.escape(old)}\b", new, source)
    return source


def _has(source: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", source) is not None
