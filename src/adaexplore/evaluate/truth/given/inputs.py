"""Input sets: a workload's own under several seeds, and other distributions of the same shapes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

import torch

from adaexplore.core.problem import Workload
from adaexplore.evaluate.truth.given.relations import (
    OrderedPair,
    freeze_derived,
    in_order,
    orders_of,
)
from adaexplore.evaluate.truth.given.structure import Draw, Structure, structure_of
from adaexplore.evaluate.wire.tensors import fingerprint
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Inputs, map_tensors, tensors_of

OWN_SEEDS = 3
FROZEN = "FROZEN_INPUTS"
"""The name in a problem's module of the numbers, among the tensors of a call, of those that only
the problem can draw: offsets and indices, that other values would make illegal."""
_DRAWN = Workload()
_LONG = 8
_DEEP = 3


def _normal(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    noise = torch.randn(t.shape, generator=g, device=t.device, dtype=torch.float32)
    return noise.to(t.dtype)


def _large(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    """With outliers beyond 88, where the exponential of a float32 overflows."""
    outliers = torch.rand(t.shape, generator=g, device=t.device) < 1 / 64
    return _normal(t, g) * torch.where(outliers, 40, 10).to(t.dtype)


def _small(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    return _normal(t, g) / 16


def _negative(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    return -_normal(t, g).abs()


def _sparse(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    """Its own, half of them zero, and a quarter of each longer axis at one place, so whole rows."""
    thinned = _thinned(t, g)
    for axis, size in enumerate(t.shape):
        if size >= _LONG:
            begin = int(torch.randint(size - size // 4, (), generator=g, device=t.device))
            thinned.narrow(axis, begin, size // 4).zero_()
    return thinned


def _thinned(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    keep = torch.rand(t.shape, generator=g, device=t.device) < 0.5
    return torch.where(keep, t, torch.zeros((), dtype=t.dtype, device=t.device))


def _held(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    """Large, and alike along all axes but the first and the last, such as that of time."""
    if t.dim() < _DEEP:
        return _normal(t, g)
    first = t[(slice(None), *(slice(1) for _ in t.shape[1:-1]))]
    return (10 * _normal(first, g)).expand(t.shape).contiguous()


def _holes(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    """Its own, with NaN among them."""
    holes = torch.rand(t.shape, generator=g, device=t.device) < 1 / 64
    return t.masked_fill(holes, float("nan"))


def _positive(draw: Draw, factor: float = 1.0) -> Draw:
    return lambda t, g: draw(t, g).abs() * factor


def _constant_rows(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    rows = _normal(t[..., :1] if t.dim() else t, g)
    return rows.expand(t.shape).contiguous()


DISTRIBUTIONS: dict[str, Draw] = {
    "normal": _normal,
    "large": _large,
    "sparse": _sparse,
    "negative": _negative,
    "constant-rows": _constant_rows,
    "small": _small,
    "held": _held,
    "holes": _holes,
}
"""Applied to floating-point inputs, within the structure of the problem's own."""

_MILDER: dict[str, Draw] = {
    "normal": _positive(_normal),
    "large": _positive(_large, 1 / 4),
    "sparse": _thinned,
    "constant-rows": _positive(_constant_rows),
    "small": _positive(_small),
    "held": _positive(_held, 1 / 4),
}
"""Those in whose place come these where the reference gives no numbers for them."""


@dataclass(frozen=True, slots=True)
class InputSet:
    """One set of arguments of `forward`.

    `from_problem` marks the workload's own inputs; `varied` marks variations of them, which stand
    in for other draws where every draw is the same.
    """

    name: str
    inputs: Inputs
    from_problem: bool
    varied: bool = False


class InputSets:
    """A workload's own inputs under `OWN_SEEDS` seeds, and one set for each distribution.

    Own sets and distributions alternate, so that an early stop has seen both. What is alike along
    inner axes needs an input that has some, and only a reference that `handles_nan` gets NaN. With
    `own_only`, there are no distributions. Where every draw is the same, as captured inputs are,
    the own sets after the first are variations of it. So they are where draws differ in size
    (`sizes_vary`), or under one seed (`unseeded`): the first draw stands for all. A variation or a
    distribution may lie outside what the reference can take. Iterating again gives the same sets.
    """

    def __init__(
        self,
        instance: Instance,
        seed: int,
        workload: Workload = _DRAWN,
        *,
        handles_nan: bool = False,
        own_only: bool = False,
    ) -> None:
        self._handles_nan = handles_nan
        self._own_only = own_only
        self._instance = instance
        self._seed = seed
        self._workload = workload
        draws = [instance.inputs(seed + i, workload) for i in range(OWN_SEEDS)]
        self.sizes_vary = any(_form(draw) != _form(draws[0]) for draw in draws[1:])
        self.unseeded = not is_redrawn(draws[0], instance, seed, workload)
        self._only = map_tensors(torch.clone, draws[0]) if self.unseeded else None
        if self.sizes_vary or self.unseeded:
            draws = draws[:1] * OWN_SEEDS
        self.structures = _structures(draws)
        if workload.file or self.sizes_vary or self.unseeded:  # zeros of one example are chance
            self.structures = [replace(s, zeros=None) for s in self.structures]
        self._alike = _are_alike(draws)
        self._orders = related(draws[:1] if self._alike else draws, self.structures)
        freeze_marked(instance.module, self.structures)
        floats = zip(tensors_of(draws[0]), self.structures, strict=True)
        self._is_deep = any(
            t.is_floating_point() and t.dim() >= _DEEP and not s.frozen for t, s in floats
        )

    @property
    def frozen(self) -> list[bool]:
        """For each input tensor, whether only the problem itself can draw it."""
        return [structure.frozen for structure in self.structures]

    def __iter__(self) -> Iterator[InputSet]:
        own = map(self._own, range(OWN_SEEDS))
        for name in DISTRIBUTIONS:
            yield from itertools.islice(own, 1)
            if not all(s.frozen for s in self.structures) and self._is_of_use(name):
                yield self._drawn(name, DISTRIBUTIONS[name])

    def _is_of_use(self, name: str) -> bool:
        if self._own_only:
            return False
        return {"held": self._is_deep, "holes": self._handles_nan}.get(name, True)

    def milder(self, name: str) -> InputSet | None:
        """Return a set in the place of one that the reference cannot take, None where none is."""
        draw = _MILDER.get(name)
        return self._drawn(name, draw, mild=True) if draw else None

    def _own(self, number: int) -> InputSet:
        seed, varied = self._seed + number, self._alike and number > 0
        inputs = self._draw(seed)
        if varied:
            inputs = vary(inputs, self.structures, seed, self._orders)
        return InputSet(f"own-{number}", inputs, from_problem=True, varied=varied)

    def _draw(self, seed: int) -> Inputs:
        """Draw inputs of one size."""
        if self._only is not None:
            return map_tensors(torch.clone, self._only)
        return self._instance.inputs(self._seed if self.sizes_vary else seed, self._workload)

    def _drawn(self, name: str, distribution: Draw, *, mild: bool = False) -> InputSet:
        seed = self._seed + OWN_SEEDS + [*DISTRIBUTIONS].index(name)
        inputs = self._draw(seed)
        generator = torch.Generator(self._instance.device).manual_seed(seed)
        left = iter(self.structures)

        def draw(t: torch.Tensor) -> torch.Tensor:
            structure = next(left)
            if structure.frozen:
                return t
            if t.is_floating_point():
                return structure.keep(distribution(t, generator), t)
            if t.dtype is torch.bool:
                return _other_bools("" if mild else name, t, structure, generator)
            return _other_integers(name, t, structure, generator)

        drawn = in_order(map_tensors(draw, inputs), inputs, self._orders)
        return InputSet(name, drawn, from_problem=False)


def is_redrawn(drawn: Inputs, instance: Instance, seed: int, workload: Workload) -> bool:
    """Return true if a draw under this seed gives the same bits once more."""
    again = instance.inputs(seed, workload)
    return _form(again) == _form(drawn) and marks_of(again) == marks_of(drawn)


def names_nan(source: str) -> bool:
    """Return true for a module that names a function for missing numbers, such as `nanmean`.

    Not `isnan` and `nan_to_num`, by which a module mends what it has computed itself.
    """
    return re.search(r"\bnan(?!_to_num)[a-z]{3,}\s*\(", source) is not None


def freeze_marked(module: ModuleType, structures: list[Structure]) -> None:
    """Freeze the structures of the inputs that a problem's module names (`FROZEN`)."""
    for number in getattr(module, FROZEN, ()):
        structures[number] = Structure(frozen=True)


def related(draws: Sequence[Inputs], structures: list[Structure]) -> tuple[OrderedPair, ...]:
    """Freeze the structures of inputs that follow from others; return the orders between others."""
    freeze_derived(draws, structures)
    return orders_of(draws, structures)


def vary(
    inputs: Inputs, structures: Iterable[Structure], seed: int, orders: Sequence[OrderedPair] = ()
) -> Inputs:
    """Return inputs of the same kind with other numbers, within their structures and orders.

    Of floating-point numbers that are not zero, one in eight becomes another of the tensor's, half
    change their sign where both signs occur, one in sixteen becomes zero where there are zeros by
    chance, and each is scaled by a random factor between 0.5 and 1.5 of its own.
    Other tensors are drawn from their own values, but a sentinel keeps its places; bools with as
    many True in each row where that is their structure. Frozen inputs stay; where all are frozen,
    floating-point numbers are scaled all the same; integers alone, of one shape, get another order
    all the same.
    """
    tensors, known = tensors_of(inputs), list(structures)
    if not tensors:
        return inputs
    if all(structure.frozen for structure in known):
        plain = not any(t.is_floating_point() or t.is_complex() for t in tensors)
        alone = plain and len({t.shape for t in tensors}) == 1  # no lengths, no offsets
        frozen = [not (t.is_floating_point() or alone) for t in tensors]
        known = [Structure(frozen=each, ordered=True) for each in frozen]
    generator = torch.Generator(tensors[0].device).manual_seed(seed)
    left = iter(known)

    def varied(t: torch.Tensor) -> torch.Tensor:
        structure = next(left)
        if structure.frozen:
            return t
        new = _other_numbers(t, structure, generator)
        return torch.empty_like(t).copy_(new)  # with the strides of the old

    return in_order(map_tensors(varied, inputs), inputs, orders)


def _other_numbers(t: torch.Tensor, structure: Structure, g: torch.Generator) -> torch.Tensor:
    if not t.is_floating_point():
        return _other_values(t, structure, g)
    factors = torch.rand(t.shape, generator=g, device=t.device) + 0.5
    if not structure.ordered:
        if bool((t > 0).any()) and bool((t < 0).any()):
            factors *= torch.randint(2, t.shape, generator=g, device=t.device) * 2 - 1
        chance, is_set = torch.rand(t.shape, generator=g, device=t.device), t != 0
        t = torch.where((chance < 1 / 8) & is_set, _drawn_from(t, g, t[is_set]), t)
        if structure.zeros is None and not structure.row_counts and not bool(is_set.all()):
            t = t.masked_fill(chance > 15 / 16, 0)
    scaled = t * factors if t.itemsize > 1 else (t.float() * factors).to(t.dtype)
    if structure.unit == "sum":
        return scaled / scaled.sum(-1, keepdim=True)
    return structure.keep(scaled, t)


def _other_values(t: torch.Tensor, structure: Structure, g: torch.Generator) -> torch.Tensor:
    if structure.row_counts:
        return _reordered_in_rows(t, g)
    if structure.sentinel is not None:
        marked = t == structure.sentinel
        return torch.where(marked, t, _drawn_from(t, g, t[~marked]))
    return _reordered(t, g) if structure.ordered else _drawn_from(t, g)


def _drawn_from(
    t: torch.Tensor, g: torch.Generator, values: torch.Tensor | None = None
) -> torch.Tensor:
    """Return as many of these values, by default its own, as a tensor has."""
    pool = t.flatten() if values is None else values
    if not pool.numel():
        return t
    return pool[torch.randint(pool.numel(), t.shape, generator=g, device=t.device)]


def _reordered_in_rows(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    order = torch.rand(t.shape, generator=g, device=t.device).argsort(-1)
    return t.gather(-1, order)


def _reordered(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    order = torch.randperm(t.numel(), generator=g, device=t.device)
    return t.flatten()[order].reshape(t.shape)


def marks_of(inputs: Inputs) -> list[int]:
    """Return the fingerprints of all tensors of a draw."""
    return [fingerprint(t) for t in tensors_of(inputs)]


def _form(inputs: Inputs) -> list[tuple[torch.Size, torch.dtype]]:
    return [(t.shape, t.dtype) for t in tensors_of(inputs)]


def _are_alike(draws: Sequence[Inputs]) -> bool:
    rows = zip(*map(tensors_of, draws), strict=True)
    return all(torch.equal(row[0], t) for row in rows for t in row[1:])


def _structures(draws: Sequence[Inputs]) -> list[Structure]:
    """Of every tensor among the inputs."""
    rows = list(zip(*map(tensors_of, draws), strict=True))
    if _are_alike(draws):
        rows = [row[:1] for row in rows]  # inputs under a seed of their own: nothing is a constant
    return [structure_of(row) for row in rows]


def _other_integers(
    name: str, t: torch.Tensor, structure: Structure, g: torch.Generator
) -> torch.Tensor:
    """Other legal values: uniform, all alike, half of them at either end of their range."""
    low, high = (torch.as_tensor(end, device=t.device) for end in (structure.low, structure.high))
    share = torch.rand(t.shape, generator=g, device=t.device, dtype=torch.float64)
    half = torch.rand(t.shape, generator=g, device=t.device) < 0.5
    match name:
        case "normal":
            new = _between(low, high, share)
        case "constant-rows":
            new = _between(low, high, share.flatten()[0]).expand(t.shape).contiguous()
        case "large":
            new = torch.where(half, high, t)
        case "small":
            new = torch.where(half, low, t)
        case _:
            return t
    new = new.to(t.dtype)
    return new if structure.sentinel is None else torch.where(t == structure.sentinel, t, new)


def _between(low: torch.Tensor, high: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """Return integers at shares from 0 to 1 of their ranges."""
    return (low + (share * (high - low + 1)).long()).minimum(high)


def _other_bools(
    name: str, t: torch.Tensor, structure: Structure, g: torch.Generator
) -> torch.Tensor:
    """Other shares of True: a half, nearly all, nearly none, all or none of a row; or the same."""
    if structure.row_counts:
        return _reordered_in_rows(t, g)
    match name:
        case "normal":
            return torch.rand(t.shape, generator=g, device=t.device) < 1 / 2
        case "large":
            return torch.rand(t.shape, generator=g, device=t.device) < 7 / 8
        case "small":
            return torch.rand(t.shape, generator=g, device=t.device) < 1 / 8
        case "constant-rows":
            rows = torch.rand(t[..., :1].shape if t.dim() else (), generator=g, device=t.device)
            return (rows < 1 / 2).expand(t.shape).contiguous()
        case _:
            return _reordered(t, g)
