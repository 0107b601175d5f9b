"""Merging of memories: the record of each is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from adaexplore.core.rule import Rule
from adaexplore.memory.signature import alike


def merge_memories(*memories: Iterable[Rule]) -> list[Rule]:
    """Return every rule of the memories once.

    Rules are the same where their names are. Those of two memories are so too where their kind,
    statement and signature are, unless they have other programs and hold in other places: a rule
    may have programs for each version of Triton. Tasks and support are those of all, and so are
    places while the programs are the same; where one saw a rule hold and a later one saw it gone,
    the later counts, and so does what it measured. Of different programs, those that hold in more
    places stay, with their places, else the last. The source is the first one's.
    """
    rules: dict[str, Rule] = {}
    for memory in memories:
        earlier = list(rules.values())
        for rule in memory:
            known = rules.get(rule.name) or _same(rule, earlier)
            if known is None:
                rules[rule.name] = rule
            else:
                rules[known.name] = _both(rules[known.name], rule)
    return list(rules.values())


def _same(rule: Rule, rules: Iterable[Rule]) -> Rule | None:
    words = rule.statement.casefold().split()
    for other in rules:
        same_words = other.statement.casefold().split() == words
        same_cause = other.kind == rule.kind and alike(other.signature, rule.signature)
        if same_words and same_cause and not _are_versions(other, rule):
            return other
    return None


def _are_versions(one: Rule, other: Rule) -> bool:
    """Return true for other programs that hold in other places."""
    return _programs(one) != _programs(other) and not set(one.holds) & set(other.holds)


def _programs(rule: Rule) -> tuple[str, str, str]:
    return rule.reference, rule.witness, rule.remedy


def _both(old: Rule, new: Rule) -> Rule:
    tasks = tuple(dict.fromkeys((*old.tasks, *new.tasks)))
    gone = {*new.gone, *(set(old.gone) - set(new.holds))}
    if _programs(old) == _programs(new):
        kept, holds = new, {*new.holds, *(set(old.holds) - gone)}
    else:
        kept = old if set(old.holds) > set(new.holds) else new
        holds = set(kept.holds) - gone
    measured = old if new.lift is None else new
    gains = {gain.where: gain for gain in (*old.gains, *new.gains)}
    return replace(
        kept,
        name=old.name,
        source=old.source,
        holds=tuple(sorted(holds, key=str)),
        gone=tuple(sorted(gone, key=str)),
        tasks=tasks,
        support=max(len(tasks), old.support, new.support),
        topics=tuple(dict.fromkeys((*old.topics, *new.topics))),
        lift=measured.lift,
        lift_tries=measured.lift_tries,
        gains=tuple(sorted(gains.values(), key=lambda gain: str(gain.where))),
    )
