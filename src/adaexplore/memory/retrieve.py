"""The rules that a prompt should have: what its code and last failure touch, within a budget."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from adaexplore.core.rule import Gain, Platform, Rule, Signature
from adaexplore.core.text.units import estimated_tokens
from adaexplore.memory.signature import alike

_FAILED_SO = 100.0
"""Worth of a rule whose witness fails as the last candidate did: more than topics can be."""

_FAILED_BEFORE = 50.0
"""Worth of a rule whose witness fails as an earlier candidate of the run did."""

_SAME_WORDS = 0.5
"""The share of words from which a failure without a symbol is one of an earlier candidate."""

_DEMANDED = 3.0
_OF_SUPPORT = 0.5
_SCEPTICAL_TRIES = 30
"""A measured lift counts as if so many more tries had shown none: one of few tries is noise."""

_OF_PYTHON = 0.1
"""Worth of a topic that all code names, such as `if`, against one that tells something."""

_OF_A_GAIN = 18
_FOR_SPEED = 1 / 3
"""The most of a prompt's tokens that speed rules get: what fails costs more than what is slow."""


def applies(rule: Rule, triton: str, target: str = "", gpu: str = "") -> bool:
    """Return True for a rule that holds on a version of Triton and a target, as far as checked.

    What was seen there decides; then what was seen on any target of the version; then on the
    nearest version, an earlier one if there is any. A speed rule is asked about a GPU: another one
    of the same target stands for it, one of another target does not.
    """
    return any(where in rule.holds for where in _telling(rule, Platform(triton, target, gpu)))


def gain_at(rule: Rule, triton: str, target: str = "", gpu: str = "") -> Gain | None:
    """The largest measured gain that speaks for a speed rule here; see `applies`."""
    telling = _telling(rule, Platform(triton, target, gpu))
    gains = [gain for gain in rule.gains if gain.where in telling and gain.where in rule.holds]
    return max(gains, key=lambda gain: gain.speedup, default=None)


def relevant(
    rules: Iterable[Rule],
    text: str,
    *,
    triton: str,
    target: str = "",
    failure: Signature | None = None,
    earlier: Collection[Signature] = (),
    demand: str = "",
    most_tokens: int = 600,
    fill: bool = False,
) -> list[Rule]:
    """Rules whose topics `text` names or that explain a failure, most useful first.

    Those that explain `failure`, the last one, come before those that explain `earlier` ones. What
    kernels are demanded to do they will do, so topics that `demand` names count for more.

    A topic is worth the more the fewer rules have it; among equals those with more support come
    first. With `fill`, for a text that has no code yet, the others follow. Their statements
    together cost about `most_tokens` at most. Speed rules are not among them: see `faster`.
    """
    here_true = [rule for rule in rules if rule.kind != "speed" and applies(rule, triton, target)]
    worth, demanded = _worth(here_true, text), _worth(here_true, demand)
    scored = []
    for rule in here_true:
        score = _score(rule, worth, failure, earlier) + _DEMANDED * _named(rule, demanded)
        if score > 0 or fill:
            scored.append((score + _OF_SUPPORT * math.log(max(rule.support, 1)), rule))
    scored.sort(key=lambda pair: (-pair[0], pair[1].name))
    return _within(most_tokens, [rule for _, rule in scored])


def faster(
    rules: Iterable[Rule],
    text: str,
    *,
    triton: str,
    target: str = "",
    gpu: str = "",
    most_tokens: int = 600,
) -> list[tuple[Rule, Gain]]:
    """Speed rules whose topics `text` names, with what they gained; the most first.

    They cost a third of `most_tokens` at most, which leaves the rest to what must not fail.
    """
    found = [
        (rule, gain)
        for rule in rules
        if rule.kind == "speed"
        and any(_names(topic, text) for topic in rule.topics)
        and (gain := gain_at(rule, triton, target, gpu))
    ]
    found.sort(key=lambda pair: (-pair[1].speedup, pair[0].name))
    chosen = _within(int(most_tokens * _FOR_SPEED), [rule for rule, _ in found])
    return [(rule, gain) for rule, gain in found if rule in chosen]


def tokens(rule: Rule) -> int:
    """About how many tokens a rule's statement costs in a prompt, with what it gained if so."""
    return estimated_tokens(rule.statement) + (_OF_A_GAIN if rule.kind == "speed" else 2)


def _within(most_tokens: int, rules: Iterable[Rule]) -> list[Rule]:
    """The first rules that fit."""
    chosen, left = [], most_tokens
    for rule in rules:
        cost = tokens(rule)
        if cost <= left:
            chosen.append(rule)
            left -= cost
    return chosen


def _telling(rule: Rule, here: Platform) -> Collection[Platform]:
    """The places where a rule was tried whose word counts for another: itself, or the nearest."""
    here = here.as_of(rule.kind)
    seen = (*rule.holds, *rule.gone)
    if here in seen:
        return [here]
    if rule.kind == "speed":
        seen = tuple(where for where in seen if here.target in ("", where.target))
        seen = tuple(where for where in seen if where.gpu == here.gpu) or seen
    versions = {_version(where.triton) for where in seen}
    earlier = [version for version in versions if version <= _version(here.triton)]
    nearest = max(earlier) if earlier else min(versions, default=())
    return [where for where in seen if _version(where.triton) == nearest]


def _worth(rules: list[Rule], text: str) -> Mapping[str, float]:
    """Return the weight of each topic that the text names."""
    having = Counter(topic for rule in rules for topic in set(rule.topics))
    return {
        topic: math.log(1 + len(rules) / count) * (_OF_PYTHON if _is_python(topic) else 1.0)
        for topic, count in having.items()
        if _names(topic, text)
    }


def _score(
    rule: Rule,
    worth: Mapping[str, float],
    failure: Signature | None,
    earlier: Collection[Signature],
) -> float:
    explains = _FAILED_SO * (_likeness(failure, rule.signature) if failure else 0.0)
    before = max((_likeness(one, rule.signature) for one in earlier), default=0.0)
    if before >= _SAME_WORDS:
        explains = max(explains, _FAILED_BEFORE * before)
    return _named(rule, worth) + explains + _believed(rule)


def _named(rule: Rule, worth: Mapping[str, float]) -> float:
    """Return the total weight of a rule's topics that a text names."""
    return sum(worth.get(topic, 0.0) for topic in rule.topics) / max(len(rule.topics), 1)


def _believed(rule: Rule) -> float:
    """A rule's measured lift, drawn towards none."""
    return (rule.lift or 0.0) * rule.lift_tries / (rule.lift_tries + _SCEPTICAL_TRIES)


def _likeness(failure: Signature, known: Signature) -> float:
    """From 0 to 1: how far a failure tells that it is this one; a wrong output has every cause.

    Where no symbol is named, by the words that both messages have.
    """
    if failure.status == "wrong_output" or not alike(failure, known):
        return 0.0
    if failure.symbol:
        return 1.0
    said, meant = set(failure.message.split()), set(known.message.split())
    return len(said & meant) / len(said | meant) if said | meant else 0.0


def _is_python(topic: str) -> bool:
    """Return True for an operator, keyword or builtin of Python."""
    return not re.search(r"\w{2}", topic) or keyword.iskeyword(topic) or hasattr(builtins, topic)


def _names(topic: str, text: str) -> bool:
    """Return True if a text names a topic; `tl.dot_scaled` does not name `tl.dot`."""
    before = r"(?<![\w.])" if topic[:1].isalnum() else ""
    after = r"(?!\w)" if topic[-1:].isalnum() else ""
    return bool(topic) and re.search(before + re.escape(topic) + after, text) is not None


def _version(text: str) -> tuple[int, ...]:
    """The numbers of a version: 3.6.0+git1 is (3, 6, 0)."""
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, match[0].split("."))) if match else ()
