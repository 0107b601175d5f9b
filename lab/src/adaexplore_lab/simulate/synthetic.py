"""Synthetic landscapes with a known optimum.

A kernel belongs to a family, its structure, and has a gap to the family's ceiling, both in `ln` of
the speedup. A large step changes the family, a small one the gap. Families are in the order of
their ceilings; neighbours in that order are near in structure.

- From nothing, a large step finds family `f` with a probability that falls with `f` (`rarity`).
- With kernels to look at, it builds with probability `context` on one of them, drawn uniformly:
  the same family, the one below, or one or two above. It keeps half of what that kernel had gained.
- A small step takes a part of the gap away (`climb`) with probability `p_climb`, else it adds to
  it: the less is left, the less is gained. On a kernel that failed it mends it.
- Any step may fail. What is measured is the truth times noise; now and then it is luck.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from adaexplore.core import BadInputError, FailureStatus, StepKind
from adaexplore_lab.simulate.landscape import Look, SimulatedKernel, World
from adaexplore_lab.simulate.rugged import Knobs, Ridge

_FAILURES: Mapping[FailureStatus, float] = {
    "compile_error": 0.5,
    "wrong_output": 0.35,
    "runtime_error": 0.15,
}
_MOVES = {-1: 0.15, 0: 0.35, 1: 0.35, 2: 0.15}
_LADDER_MOVES = {0: 0.5, 1: 0.5}
_SLIP = (1.0, 1.35)
_SPREAD = (0.7, 1.3)
_LUCK = 1.3
_CELLS = 4
_DIMENSIONS = 8
_SMALL_CHANGE, _LARGE_CHANGE = 0.02, 0.3


@dataclass(frozen=True, slots=True)
class State:
    """A kernel's structure and what it lacks: a gap, or on rugged ground its knobs."""

    family: int
    gap: float
    knobs: Knobs = ()


@dataclass(frozen=True, slots=True)
class Terrain:
    """A kind of world; see the module. `low` and `high` bound the ceilings, as speedups.

    `start_gap` bounds the gap a family's first kernel has; `deception` adds to it, in proportion to
    the ceiling. On a `ladder` each family is reached only from the one below. On `rugged` ground
    the gap is that of an NK landscape over the kernel's knobs, `start_gap` its depth. Where a
    measurement is `unsteady` its noise is drawn too, `noise` being the median, and its interval
    says so; of `luck` no interval knows.
    """

    name: str
    about: str
    families: int = 8
    low: float = 0.8
    high: float = 3.0
    rarity: float = 0.6
    start_gap: tuple[float, float] = (0.3, 1.0)
    deception: float = 0.0
    climb: tuple[float, float] = (0.6, 0.95)
    p_climb: float = 0.45
    fail_large: float = 0.4
    fail_small: float = 0.2
    noise: float = 0.01
    unsteady: float = 0.0
    luck: float = 0.0
    context: float = 0.6
    ground: Literal["slopes", "ladder", "rugged"] = "slopes"

    def world(self, seed: int) -> World:
        """The world of that number: ceilings, start gaps and looks are drawn anew."""
        return _Hills(self, random.Random(f"{self.name}/{seed}"))


class _Hills:
    """A world on a terrain."""

    def __init__(self, terrain: Terrain, rng: random.Random) -> None:
        self._terrain = terrain
        low, high = math.log(terrain.low), math.log(terrain.high)
        drawn = sorted(rng.uniform(low, high) for _ in range(terrain.families - 1))
        self._ceilings = [*drawn, high]
        self._start_gaps = [
            rng.uniform(*terrain.start_gap) + terrain.deception * (ceiling - low)
            for ceiling in self._ceilings
        ]
        self._popularity = [terrain.rarity**family for family in range(terrain.families)]
        self._looks = [_look(rng) for _ in range(terrain.families)]
        rugged = terrain.ground == "rugged"
        self._ridges = [Ridge(rng) for _ in range(terrain.families)] if rugged else []

    @property
    def optimum(self) -> float:
        """Speedup of the best family without a gap."""
        return math.exp(self._ceilings[-1])

    def grow(
        self,
        parent: SimulatedKernel | None,
        step_kind: StepKind,
        shown: Sequence[SimulatedKernel],
        rng: random.Random,
    ) -> SimulatedKernel:
        """See `World.grow`."""
        terrain = self._terrain
        if step_kind == "small" and parent is not None:
            before: State = parent.state
            state = before if parent.status != "passed" else self._small(before, rng)
            look, fails = _changed(parent.look, _SMALL_CHANGE, rng), terrain.fail_small
        else:
            state = self._large([each.state for each in shown if each.status == "passed"], rng)
            look = _changed(self._looks[state.family], _LARGE_CHANGE, rng)
            fails = terrain.fail_large
        if rng.random() < fails:
            [status] = rng.choices(list(_FAILURES), list(_FAILURES.values()))
            return SimulatedKernel(status, 0.0, 0.0, look, state)
        speedup = math.exp(self._ceilings[state.family] - self._gap(state))
        return self.measure(SimulatedKernel("passed", speedup, 0.0, look, state), rng)

    def measure(self, kernel: SimulatedKernel, rng: random.Random) -> SimulatedKernel:
        """See `World.measure`."""
        terrain = self._terrain
        luck = _LUCK if rng.random() < terrain.luck else 1.0
        noise = terrain.noise
        if terrain.unsteady:
            noise *= math.exp(rng.gauss(0.0, terrain.unsteady))
        measured = kernel.speedup * math.exp(rng.gauss(0.0, noise)) * luck
        return replace(kernel, measured=measured, deviation=noise)

    def _small(self, state: State, rng: random.Random) -> State:
        if self._ridges:
            return State(state.family, 0.0, self._ridges[state.family].step(state.knobs, rng))
        terrain = self._terrain
        factor = rng.uniform(*(terrain.climb if rng.random() < terrain.p_climb else _SLIP))
        return State(state.family, state.gap * factor)

    def _large(self, shown: Sequence[State], rng: random.Random) -> State:
        terrain = self._terrain
        ladder = terrain.ground == "ladder"
        if shown and rng.random() < terrain.context:
            base = rng.choice(shown)
            moves = _LADDER_MOVES if ladder else _MOVES
            [move] = rng.choices(list(moves), list(moves.values()))
            family = min(max(base.family + move, 0), terrain.families - 1)
            return self._fresh(family, base, rng)
        [family] = [0] if ladder else rng.choices(range(terrain.families), self._popularity)
        return self._fresh(family, None, rng)

    def _fresh(self, family: int, base: State | None, rng: random.Random) -> State:
        """A new kernel of a family, with half of what the one it builds on had gained."""
        if self._ridges:
            like = base.knobs if base else ()
            return State(family, 0.0, self._ridges[family].start(like, rng))
        left = 1.0 if base is None else (1 + base.gap / self._start_gaps[base.family]) / 2
        return State(family, self._start_gaps[family] * min(left, 1.0) * rng.uniform(*_SPREAD))

    def _gap(self, state: State) -> float:
        if self._ridges:
            return self._start_gaps[state.family] * self._ridges[state.family].gap(state.knobs)
        return state.gap


def _look(rng: random.Random) -> Look:
    vector = [rng.gauss(0.0, 1.0) for _ in range(_DIMENSIONS)]
    return Look((rng.randrange(_CELLS), rng.randrange(_CELLS)), _scaled(vector))


def _changed(look: Look, by: float, rng: random.Random) -> Look:
    """A look at about that distance."""
    spread = by / math.sqrt(_DIMENSIONS)
    vector = _scaled([value + rng.gauss(0.0, spread) for value in look.vector])
    return Look(look.cell, vector)


def _scaled(vector: Sequence[float]) -> tuple[float, ...]:
    length = math.hypot(*vector)
    return tuple(value / length for value in vector)


SYNTHETIC: Mapping[str, Terrain] = {
    terrain.name: terrain
    for terrain in (
        Terrain("families", "eight structures, the better the rarer; small steps climb in each"),
        Terrain(
            "ladder",
            "six structures, each found only by building on the one below",
            families=6,
            start_gap=(0.2, 0.5),
            ground="ladder",
        ),
        Terrain(
            "needle",
            "twenty structures, one of them far better and found once in fifty from nothing",
            families=20,
            high=5.0,
            rarity=0.87,
            context=0.3,
        ),
        Terrain(
            "deceptive",
            "the higher a structure's ceiling, the slower its first kernels",
            start_gap=(0.1, 0.3),
            deception=1.3,
            rarity=0.75,
        ),
        Terrain(
            "rugged",
            "six knobs that depend on each other in each of six structures: local optima",
            families=6,
            start_gap=(0.8, 1.2),
            rarity=0.7,
            ground="rugged",
        ),
        Terrain(
            "polish",
            "two structures, nearly alike; everything is gained by many small steps",
            families=2,
            low=2.5,
            rarity=1.0,
            start_gap=(0.9, 1.1),
            climb=(0.8, 0.97),
            p_climb=0.4,
            fail_large=0.3,
        ),
        Terrain(
            "noisy",
            "as families, measured within 10 %, and one in twenty 30 % too fast",
            noise=0.1,
            luck=0.05,
        ),
        Terrain(
            "unsteady",
            "as families; a measurement has 1 to 30 % of noise, and its interval says so",
            noise=0.05,
            unsteady=1.0,
        ),
        Terrain(
            "fragile",
            "as families, but three in four large steps fail, and every second small one",
            fail_large=0.75,
            fail_small=0.5,
        ),
    )
}
"""By name."""


def parse_terrain(text: str) -> Terrain:
    """`NAME`, or `NAME:KEY=VALUE,...` with other numbers, such as `families:context=0.3`.

    Raises `BadInputError` for a name, a key or a value that there is not.
    """
    name, _, rest = text.partition(":")
    if name not in SYNTHETIC:
        known = ", ".join(SYNTHETIC)
        raise BadInputError(f"synthetic:{text}: no such landscape; known: {known}")
    terrain = SYNTHETIC[name]
    numbers = {k: v for k, v in asdict(terrain).items() if isinstance(v, int | float)}
    changes: dict[str, Any] = {}
    for pair in filter(None, rest.split(",")):
        key, _, value = pair.partition("=")
        if key not in numbers:
            raise BadInputError(f"synthetic:{text}: no number {key!r}; known: {', '.join(numbers)}")
        try:
            changes[key] = type(numbers[key])(value)
        except ValueError:
            raise BadInputError(f"synthetic:{text}: {key} cannot be {value!r}") from None
    changed = replace(terrain, name=text, **changes)
    if changed.families < 1 or not 0 < changed.low <= changed.high:
        raise BadInputError(f"synthetic:{text}: it takes a family, and 0 < low <= high")
    return changed
