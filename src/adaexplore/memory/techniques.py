"""Techniques that attempts are asked to use, so that unusual parts of a language fail too.

A model that writes every task its own, safe way fails at few; what it believes of the rest of
the language stays untried, until a search needs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from adaexplore.core.problem import Language
from adaexplore.languages import DIALECTS
from adaexplore.languages.base import Technique
from adaexplore.memory.topics import implied


def technique_demands(
    references: Sequence[str],
    *,
    language: Language,
    on_gpu: bool,
    only: Collection[str] = (),
    beside: Sequence[str] = (),
) -> list[str]:
    """Return the technique that each attempt at a task must use, as a demand for its prompt.

    Of the language's techniques that fit a task it gets the one that those before it got least; ""
    where none fits. `only` names those to choose from, all where it is empty; `beside` has the
    demands that the tasks have already.
    """
    used: Counter[str] = Counter()
    found = []
    for reference, other in zip(references, beside or [""] * len(references), strict=True):
        topics = set(implied(reference).splitlines())
        fitting = [
            technique
            for technique in DIALECTS[language].techniques
            if (not technique.topics or technique.topics & topics)
            and (on_gpu or not technique.needs_gpu)
            and (not only or technique.name in only)
            and _demand(technique) != other
        ]
        chosen = min(fitting, key=lambda technique: used[technique.name], default=None)
        if chosen:
            used[chosen.name] += 1
        found.append(_demand(chosen) if chosen else "")
    return found


def _demand(technique: Technique) -> str:
    return f"{technique.text}."
