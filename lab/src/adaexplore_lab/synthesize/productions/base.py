"""Productions: ways to continue from a value, where they fit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from adaexplore_lab.synthesize.draft import Draft, Value
from adaexplore_lab.synthesize.sizes import Dim, Shape, UnfitError, values

Grow = Callable[[Draft, Value], Value]
"""Adds to the draft what makes another value of one; raises `UnfitError` where it does not fit."""

_TRIES = 40


@dataclass(frozen=True, slots=True)
class Production:
    """A named way to go on."""

    name: str
    family: str
    grow: Grow


CATALOGUE: dict[str, list[Production]] = {}
"""Every production, by family; the modules of this package fill it."""

ENDINGS = ("loss", "selection")
"""Families whose values are only good to be returned."""

SHAPE_KEEPING = ("activation", "binary", "norm", "scan", "softmax", "linear", "gate")
"""Families that often leave a value's shape as it is."""


def production(family: str) -> Callable[[Grow], Grow]:
    """Put a function into the catalogue under its own name."""

    def put(grow: Grow) -> Grow:
        register(family, getattr(grow, "__name__", family).strip("_"), grow)
        return grow

    return put


def register(family: str, name: str, grow: Grow) -> None:
    """Put one of many like it into the catalogue."""
    CATALOGUE.setdefault(family, []).append(Production(name, family, grow))


def step(draft: Draft, x: Value, families: Collection[str], *, same_shape: bool = False) -> Value:
    """One production of these families, whichever fits; `UnfitError` if none is found."""
    for _ in range(_TRIES):
        family = draft.rng.choice(sorted(families))
        chosen = draft.rng.choice(CATALOGUE[family])
        before = draft.snapshot()
        try:
            grown = chosen.grow(draft, x)
            draft.require(not same_shape or (values(grown.shape), grown.dtype) == _form(x))
        except UnfitError:
            draft.restore(before)
        else:
            return grown
    raise UnfitError(f"nothing fits {values(x.shape)}")


def _form(x: Value) -> tuple[tuple[int, ...], str]:
    return values(x.shape), x.dtype


def axis_of(draft: Draft, x: Value, least: int = 2, first: int = 0) -> int:
    """An axis of at least that size, the last one as often as all others."""
    fitting = [i for i in range(first, x.rank) if x.shape[i].value >= least]
    draft.require(bool(fitting))
    if fitting[-1] == x.rank - 1 and draft.chance(0.5):
        return fitting[-1]
    return draft.rng.choice(fitting)


def written(draft: Draft, axis: int, rank: int) -> str:
    """An axis as people write it, from the front or from the back."""
    return str(axis - rank) if axis == rank - 1 or draft.chance(0.3) else str(axis)


def without(shape: Shape, axis: int, *, keepdim: bool = False) -> Shape:
    """The shape that a reduction over an axis leaves."""
    kept = (Dim.of(1),) if keepdim else ()
    return (*shape[:axis], *kept, *shape[axis + 1 :])


def replaced(shape: Shape, axis: int, dim: Dim) -> Shape:
    """The shape with another size along an axis."""
    return (*shape[:axis], dim, *shape[axis + 1 :])
