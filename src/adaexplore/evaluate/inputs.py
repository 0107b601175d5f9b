"""Input sets: the problem's own under several seeds, and other distributions of the same shapes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from adaexplore.sandbox.instance import Inputs, Instance, map_tensors

OWN_SEEDS = 3

_Transform = Callable[[torch.Tensor, torch.Generator], torch.Tensor]


def _normal(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    noise = torch.randn(t.shape, generator=g, device=t.device, dtype=torch.float32)
    return noise.to(t.dtype)


def _large(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    return _normal(t, g) * 10


def _negative(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    return -_normal(t, g).abs()


def _sparse(t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    keep = torch.rand(t.shape, generator=g, device=t.device) < 0.5
    return torch.where(keep, t, torch.zeros((), dtype=t.dtype, device=t.device))


DISTRIBUTIONS: dict[str, _Transform] = {
    "normal": _normal,
    "large": _large,
    "negative": _negative,
    "sparse": _sparse,
}
"""Applied to floating-point inputs; the others stay as the problem made them."""


@dataclass(frozen=True, slots=True)
class InputSet:
    """One set of arguments of `forward`; `own` where the problem's `get_inputs` made it as is."""

    name: str
    inputs: Inputs
    own: bool


def input_sets(instance: Instance, seed: int) -> Iterator[InputSet]:
    """The problem's own inputs under `OWN_SEEDS` seeds, and one set for each distribution.

    In turn, so that whoever must stop early has seen both. A distribution may lie outside what the
    reference can take; whoever uses it finds out.
    """
    own = (InputSet(f"own-{i}", instance.inputs(seed + i), own=True) for i in range(OWN_SEEDS))
    for i, name in enumerate(DISTRIBUTIONS, start=OWN_SEEDS):
        yield from itertools.islice(own, 1)
        yield _drawn(instance, name, seed + i)


def _drawn(instance: Instance, name: str, seed: int) -> InputSet:
    inputs = instance.inputs(seed)
    generator = torch.Generator(instance.device).manual_seed(seed)

    def draw(t: torch.Tensor) -> torch.Tensor:
        return DISTRIBUTIONS[name](t, generator) if t.is_floating_point() else t

    return InputSet(name, map_tensors(draw, inputs), own=False)
