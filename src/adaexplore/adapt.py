"""The loop that makes a memory: try, see what fails, keep what is true."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from adaexplore.memory.check import Checked, Checker
from adaexplore.memory.probes.base import Probe
from adaexplore.rule import Rule

Tell = Callable[[Rule, str], None]
"""Is told of every rule that was tried, and in one line why it is none; "" where it is true."""


def probe(probes: Iterable[Probe], checker: Checker, tell: Tell) -> list[Rule]:
    """The rules that hold in the checker's place: witness fails, remedy passes.

    A probe whose witness does not fail there is no rule there.
    """
    rules = []
    for tried in sorted(probes, key=lambda p: p.reference):  # those of one judge together
        rule = tried.rule()
        try:
            rule = checker.observed(rule)
        except ValueError:
            tell(rule, "its witness passes here")
            continue
        checked = checker.check(rule)
        tell(rule, checked.why)
        if checked.true:
            rules.append(checked.rule)
    return rules


def check(rules: Iterable[Rule], checker: Checker, tell: Tell) -> list[Checked]:
    """What became of every rule in the checker's place, in the order that they were tried."""
    checked = []
    for rule in sorted(rules, key=lambda r: r.reference):
        checked.append(checker.check(rule))
        tell(rule, checked[-1].why)
    return checked
