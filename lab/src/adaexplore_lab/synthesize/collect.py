"""The stream of tasks that are tried: the grammar's, a model's, or both in turn."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import cycle

from adaexplore_lab.synthesize.author import Author, Unusable
from adaexplore_lab.synthesize.grammar import grow
from adaexplore_lab.synthesize.task import Origin, SyntheticTask
from adaexplore_lab.synthesize.validate import Validated, Validator

GRAMMAR: Origin = "grammar"

_SEEDS_APART = 1_000_000  # what a run's seed moves the grammar's by
_EXAMPLES = 12  # the grammar's, to be shown while there are few others
_PATIENCE = 10  # attempts for each task that is wanted
_LEAST_ATTEMPTS = 20


def attempts(
    styles: Sequence[Origin], seed: int, author: Author | None, kept: Sequence[SyntheticTask]
) -> Iterator[SyntheticTask | Unusable]:
    """Tasks without end, by the styles in turn; the same seed and replies give the same ones.

    `kept` may grow meanwhile: a model is shown some of it. Styles other than the grammar need an
    `author`.
    """
    rng = random.Random(f"attempts {seed}")
    seeds = iter(range(seed * _SEEDS_APART, (seed + 1) * _SEEDS_APART))
    examples = [grow(-1 - i) for i in range(_EXAMPLES)]  # from seeds that no run has
    for style in cycle(styles):
        if style == "grammar":
            yield grow(next(seeds))
        else:
            assert author is not None
            shown = list(kept) if len(kept) >= _EXAMPLES else [*kept, *examples]
            yield author.write(style, rng, shown)


def collect(
    tried: Iterator[SyntheticTask | Unusable], validator: Validator, wanted: int
) -> Iterator[Validated | Unusable]:
    """Yield the result of each attempt, until `wanted` tasks are kept.

    Ends as well after ten attempts for each, and at least twenty: where little is kept, more of the
    same is no help.
    """
    most, kept = max(_LEAST_ATTEMPTS, _PATIENCE * wanted), 0
    while kept < wanted and most > 0:
        most -= 1
        attempt = next(tried)
        found = attempt if isinstance(attempt, Unusable) else validator.check(attempt)
        kept += isinstance(found, Validated) and not found.why
        yield found
