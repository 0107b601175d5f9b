"""Techniques that attempts are asked to use, so that unusual parts of a language fail too.

A model that writes every task its own, safe way fails at few; what it believes of the rest of
the language stays untried, until a search needs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from adaexplore.core.problem import Language
from adaexplore.languages import DIALECTS
from adaexplore.memory.topics import implied


def technique_demands(references: Iterable[str], *, language: Language, on_gpu: bool) -> list[str]:
    """Return the technique that each attempt at a task must use, as a demand for its prompt.

    Of the language's techniques that fit a task it gets the one that those before it got least; ""
    where none fits.
    """
    used: Counter[str] = Counter()
    found = []
    for reference in references:
        topics = set(implied(reference).splitlines())
        fitting = [
            technique
            for technique in DIALECTS[language].techniques
            if (not technique.topics or technique.topics & topics)
            and (on_gpu or not technique.needs_gpu)
        ]
        chosen = min(fitting, key=lambda technique: used[technique.name], default=None)
        if chosen:
            used[chosen.name] += 1
        found.append(f"{chosen.text}." if chosen else "")
    return found
