"""Rules that nobody tried, `statement||count` a line: which of them are known to be true?

A statement is no rule: it may hold no longer, or never did. It is worth as much as a known rule of
the same content, whose programs were run.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from adaexplore.core.errors import BadInputError
from adaexplore.core.rule import Platform, Rule, unchecked_rule

SayingStatus = Literal["witnessed", "stale", "unverified", "no rule"]
"""A known rule says the same and holds here; what it forbids works here; nothing known says it;
there is nothing in it that could be tried."""

_LEAST_LIKENESS = 0.3
_CODE_WEIGHS = 3.0
_STRANGE_WEIGHS = 0.3  # a word that no known rule has: names of somebody's own, mostly

_LINE = re.compile(r"(?P<statement>.*\S)\s*\|\|\s*(?P<count>\d+(?:\.\d+)?)")
_ATTRIBUTE = re.compile(r"attribute '(\w+)' on module '?tl'?")
_NAME = r"(?:libdevice|tl|torch|triton)(?:\.\w+)+|(?<![\w.])\.[a-z]\w*|\.\w+(?=\()"
_CODE = re.compile(rf"{_NAME}|\w+(?==(?!=))")
_WORD = re.compile(r"[a-z]\w+|\d+", re.IGNORECASE)
_PLACE = re.compile(r"\bline \d+|\.py\b|https?:")
_OF_TRITON = re.compile(
    r"\b(?:tl|libdevice|triton)\b|\bkernel|@?\bjit\b|constexpr|\bpointer|\bgrid\b|shared memory"
    r"|num_warps|num_stages|autotune",
    re.IGNORECASE,
)
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "an and are as at be by can cannot do does for from has have if in inside into is it its "
        "like must no not of on only or such than that the them then there these this to use used "
        "using what when where which with within without you your "
        "triton kernel call called calling compile compiled compilation",
    )
)


@dataclass(frozen=True, slots=True)
class Saying:
    """A statement that somebody's memory holds, and how often it was met there."""

    statement: str
    count: float


@dataclass(frozen=True, slots=True)
class SayingMatch:
    """The rule that says the same as a saying, None if there is none, and their likeness."""

    saying: Saying
    rule: Rule | None
    likeness: float = 0.0


def read_sayings(path: Path, least_count: float = 0.0) -> list[Saying]:
    """Return the lines of a file that were met at least `least_count` times.

    Raises `BadInputError`, with the line, for one that is not `statement||count`.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: cannot be read as text: {error}") from None
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise BadInputError(f"{path}, line {number}: write it as statement||count")
        saying = Saying(match["statement"], float(match["count"]))
        if saying.count >= least_count:
            found.append(saying)
    return found


def wordings() -> Mapping[str, Sequence[str]]:
    """Return other wordings of the bundled rules and of beliefs, by their names."""
    return tomllib.loads((files("adaexplore.memory") / "sayings.toml").read_text(encoding="utf-8"))


def find_rules(said: Iterable[Saying], known: Sequence[Rule]) -> list[SayingMatch]:
    """For each saying the known rule that is most like it, if one is alike enough.

    Alike are texts that share code and rare words (see `_Texts`). A rule is known by its statement
    with its topics and what its witness fails with, and by its other wordings.
    """
    other = wordings()
    ways = [(rule, way) for rule in known for way in (_text(rule), *other.get(rule.name, ()))]
    texts = _Texts([way for _, way in ways], {topic for rule in known for topic in rule.topics})
    found = []
    for saying in said:
        best, likeness = texts.nearest(saying.statement)
        close = likeness >= _LEAST_LIKENESS and is_checkable(saying)
        found.append(SayingMatch(saying, ways[best][0] if close else None, likeness))
    return found


def is_checkable(saying: Saying) -> bool:
    """Return True for a statement about Triton that is not about a single file."""
    text = saying.statement
    return not _PLACE.search(text) and bool(_OF_TRITON.search(text)) and bool(_terms(text, ()))


def supported_rules(rules: Iterable[Rule], found: Iterable[SayingMatch]) -> list[Rule]:
    """The rules that sayings were found to be, with their counts as support."""
    counts: Counter[str] = Counter()
    for one in found:
        if one.rule is not None:
            counts[one.rule.name] += round(one.saying.count)
    return [
        replace(rule, support=max(rule.support, counts[rule.name]), source="import")
        for rule in rules
        if rule.name in counts
    ]


def is_statements(path: Path) -> bool:
    """Return True for a file whose first line is `statement||count`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    except (OSError, UnicodeDecodeError):
        return False
    return bool(_LINE.fullmatch(next((line.strip() for line in lines if line.strip()), "")))


def unchecked_rules(said: Iterable[Saying]) -> list[Rule]:
    """Return sayings as rules that nobody tested, with their counts, in their order."""
    return [
        unchecked_rule(
            f"statement-{number:03}", one.statement, support=round(one.count), source="import"
        )
        for number, one in enumerate(said, 1)
    ]


def status_of(one: SayingMatch, known: Mapping[str, Rule], here: Platform) -> SayingStatus:
    """Return what a saying is worth on a platform, where the rules of `known` were tried."""
    if one.rule is None:
        return "unverified" if is_checkable(one.saying) else "no rule"
    rule = known[one.rule.name]
    where = here.as_of(rule.kind)
    if where in rule.holds:
        return "witnessed"
    return "stale" if where in rule.gone else "unverified"


class _Texts:
    """Texts as vectors of their terms, weighed by how few of them have a term."""

    def __init__(self, texts: Sequence[str], topics: Iterable[str]) -> None:
        self._topics = {topic.lower() for topic in topics}
        self._names = list(map(_names, texts))
        self._words = [set(re.findall(r"\w+", text.lower())) for text in texts]
        terms = [_terms(text, self._topics) for text in texts]
        having = Counter(term for own in terms for term in own)
        self._rarity = {term: math.log(1 + len(texts) / n) for term, n in having.items()}
        self._vectors = list(map(self._weighed, terms))
        self._usual_length = sum(map(_length, self._vectors)) / max(len(texts), 1)

    def nearest(self, text: str) -> tuple[int, float]:
        """The number of the text that is most like this one, and how much so; (-1, 0) of none.

        It is the cosine, with half of a text's length as all have it: else the shortest would be
        most like everything. Texts about other functions are left out: those that name some, and
        not the one that this text names first.
        """
        asked = self._weighed(_terms(text, self._topics))
        subject = _names(text)[:1]
        best, most = -1, 0.0
        for number, own in enumerate(self._vectors):
            if self._names[number] and not self._words[number].issuperset(subject):
                continue
            shared = sum(asked[term] * own[term] for term in asked.keys() & own.keys())
            if shared:
                likeness = shared / _length(asked) / math.sqrt(_length(own) * self._usual_length)
                best, most = (number, likeness) if likeness > most else (best, most)
        return best, most

    def _weighed(self, terms: Mapping[str, float]) -> dict[str, float]:
        return {t: weight * self._rarity.get(t, _STRANGE_WEIGHS) for t, weight in terms.items()}


def _text(rule: Rule) -> str:
    return " ".join([rule.statement, *rule.topics, rule.signature.message])


def _length(vector: Mapping[str, float]) -> float:
    return math.sqrt(sum(weight**2 for weight in vector.values()))


def _names(text: str) -> list[str]:
    """Return the functions that a text names, in their order, without modules and objects."""
    names = re.findall(_NAME, _one_module(text).lower())
    return [name.rpartition(".")[2] for name in names if name != "triton.jit"]


def _one_module(text: str) -> str:
    """Return a text that calls Triton's language `tl`, whatever it said."""
    return _ATTRIBUTE.sub(r"tl.\1", re.sub(r"\btriton\.language\b", "tl", text))


def _terms(text: str, topics: Collection[str]) -> Mapping[str, float]:
    """Return the terms of a text with their weights: its code, and the stems of its words."""
    text = _one_module(text)
    terms = {}
    for code in _CODE.findall(text):
        terms[code.strip(".").lower()] = _CODE_WEIGHS
        terms.setdefault(code.rpartition(".")[2].lower(), 1.0)  # `x.sum()` is not far from `tl.sum`
    for word in map(str.lower, _WORD.findall(text)):
        if word in topics:
            terms[word] = _CODE_WEIGHS
        elif word not in _COMMON:
            terms.setdefault(_stem(word), 1.0)
    return terms


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word
