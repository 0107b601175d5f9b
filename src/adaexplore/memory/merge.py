"""Merging of memories: the record of each is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from adaexplore.core.rule import Rule
from adaexplore.memory.signature import alike


def merge_memories(*memories: Iterable[Rule]) -> list[Rule]:
    """Return every rule of the memories once; the last memory's programs win.

    Rules are the same where their names are, or where their kind, statement and signature are.
    Places, tasks and support are those of all; where one saw a rule hold and a later one saw it
    gone, the later counts, and so does what it measured. The source is the first one's.
    """
    rules: dict[str, Rule] = {}
    for memory in memories:
        for rule in memory:
            known = rules.get(rule.name) or _same(rule, rules.values())
            if known is None:
                rules[rule.name] = rule
            else:
                rules[known.name] = _both(known, rule)
    return list(rules.values())


def _same(rule: Rule, rules: Iterable[Rule]) -> Rule | None:
    words = rule.statement.casefold().split()
    for other in rules:
        same_words = other.statement.casefold().split() == words
        if same_words and other.kind == rule.kind and alike(other.signature, rule.signature):
            return other
    return None


def _both(old: Rule, new: Rule) -> Rule:
    tasks = tuple(dict.fromkeys((*old.tasks, *new.tasks)))
    gone = {*new.gone, *(set(old.gone) - set(new.holds))}
    holds = {*new.holds, *(set(old.holds) - gone)}
    measured = old if new.lift is None else new
    gains = {gain.where: gain for gain in (*old.gains, *new.gains)}
    return replace(
        new,
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
