"""NK landscapes: knobs whose effects depend on each other (Kauffman and Levin 1987)."""

from __future__ import annotations

import itertools
import random

Knobs = tuple[int, ...]

KNOBS = 6
VALUES = 3
NEIGHBOURS = 2
"""K: so many other knobs decide what a knob's value is worth."""


class Ridge:
    """One landscape: 729 settings, each with a gap from 0, the best of all, to 1, the worst."""

    def __init__(self, rng: random.Random) -> None:
        tables = [
            {key: rng.random() for key in itertools.product(range(VALUES), repeat=NEIGHBOURS + 1)}
            for _ in range(KNOBS)
        ]
        worth = {}
        for knobs in itertools.product(range(VALUES), repeat=KNOBS):
            around = knobs + knobs[:NEIGHBOURS]
            worth[knobs] = sum(
                table[around[i : i + NEIGHBOURS + 1]] for i, table in enumerate(tables)
            )
        best, worst = max(worth.values()), min(worth.values())
        self._gaps = {knobs: (best - value) / (best - worst) for knobs, value in worth.items()}

    def gap(self, knobs: Knobs) -> float:
        """Return the distance of a setting from the best one."""
        return self._gaps[knobs]

    def step(self, knobs: Knobs, rng: random.Random) -> Knobs:
        """Another value for one knob."""
        at = rng.randrange(KNOBS)
        value = (knobs[at] + rng.randrange(1, VALUES)) % VALUES
        return (*knobs[:at], value, *knobs[at + 1 :])

    def start(self, like: Knobs, rng: random.Random) -> Knobs:
        """Any setting, or one of which half is like another's."""
        drawn = [rng.randrange(VALUES) for _ in range(KNOBS)]
        for at in rng.sample(range(KNOBS), KNOBS // 2) if like else ():
            drawn[at] = like[at]
        return tuple(drawn)
