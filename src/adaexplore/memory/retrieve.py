"""The rules that a prompt should have: what its code and last failure touch, within a budget."""

from __future__ import annotations

import re
from collections.abc import Iterable

from adaexplore.memory.signature import alike
from adaexplore.rule import Rule, Signature
from adaexplore.units import estimated_tokens

_FAILED_SO = 10.0
"""Worth of a rule whose witness fails as the last candidate did, in topics that the text names."""


def applies(rule: Rule, triton: str) -> bool:
    """Whether a rule holds for a version of Triton, as far as it was checked there.

    One that was never checked for it is believed if it holds elsewhere.
    """
    if any(where.triton == triton for where in rule.gone):
        return any(where.triton == triton for where in rule.holds)  # on one target only
    return bool(rule.holds)


def relevant(
    rules: Iterable[Rule],
    text: str,
    *,
    triton: str,
    failure: Signature | None = None,
    most_tokens: int = 400,
    fill: bool = False,
) -> list[Rule]:
    """Rules whose topics `text` names or that explain `failure`, most useful first.

    With `fill`, for a text that has no code yet, the others follow. Their statements together cost
    about `most_tokens` at most.
    """
    scored = [
        (score, rule)
        for rule in rules
        if applies(rule, triton) and ((score := _score(rule, text, failure)) > 0 or fill)
    ]
    scored.sort(key=lambda pair: (-pair[0], -pair[1].support, pair[1].name))
    chosen, left = [], most_tokens
    for _, rule in scored:
        cost = tokens(rule)
        if cost <= left:
            chosen.append(rule)
            left -= cost
    return chosen


def tokens(rule: Rule) -> int:
    """About how many tokens a rule's statement costs in a prompt."""
    return estimated_tokens(rule.statement) + 2


def _score(rule: Rule, text: str, failure: Signature | None) -> float:
    named = sum(_names(topic, text) for topic in rule.topics)
    explains = failure is not None and alike(failure, rule.signature) and _tells(failure)
    return named / max(len(rule.topics), 1) + named + _FAILED_SO * explains + (rule.lift or 0.0)


def _tells(failure: Signature) -> bool:
    """Whether rules can be found by a failure; a wrong output has every cause."""
    return failure.status != "wrong_output" and bool(failure.symbol or failure.type)


def _names(topic: str, text: str) -> bool:
    """Whether a text names a topic; `tl.dot` is not named by `tl.dot_scaled`."""
    before = r"(?<![\w.])" if topic[:1].isalnum() else ""
    after = r"(?!\w)" if topic[-1:].isalnum() else ""
    return bool(topic) and re.search(before + re.escape(topic) + after, text) is not None
