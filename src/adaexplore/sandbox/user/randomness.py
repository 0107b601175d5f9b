"""Use of random numbers by user code, seen in the states of the generators."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


def draws_random(
    call: Callable[[], object], device: torch.device, holders: Iterable[object] = ()
) -> bool:
    """Call twice under different seeds; return whether random numbers are drawn.

    A call that sets its own seed draws the same numbers each time: it leaves its generator in one
    state, whatever the state was before. `holders` are modules that may keep generators of their
    own, which no seed reaches.
    """
    own = _generators_in(holders)
    states, kept = [], random.getstate()
    for seed in (0, 1):
        torch.manual_seed(seed)
        random.seed(seed)
        before = _states(device, own)
        call()
        states.append(list(zip(before, _states(device, own), strict=True)))
    random.setstate(kept)
    first, second = states
    return any(
        not _same(one[0], one[1]) and not _same(one[1], other[1])
        for one, other in zip(first, second, strict=True)
    )


def _generators_in(holders: Iterable[object]) -> list[Any]:
    """Return the generators among the attributes of some objects."""
    kinds: tuple[type, ...] = (torch.Generator, random.Random)
    numpy = sys.modules.get("numpy")  # torch imports it where it is installed
    if numpy is not None:
        kinds += (numpy.random.Generator, numpy.random.RandomState)
    every = (value for holder in holders for value in vars(holder).values())
    return [value for value in every if isinstance(value, kinds)]


def _states(device: torch.device, own: Iterable[Any]) -> list[Any]:
    """Return the states of all generators that code on a device may draw from."""
    states: list[Any] = [torch.default_generator.get_state(), random.getstate()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        _, keys, place, _, _ = numpy.random.get_state()
        states.append((place, keys.tobytes()))
    return states + [_state(generator) for generator in own]


def _state(generator: Any) -> Any:
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return generator.getstate()
    return pickle.dumps(generator)  # one of NumPy's


def _same(one: Any, other: Any) -> bool:
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else bool(one == other)


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Start every random generator of the process at `seed`; put new tensors on `device`."""
    random.seed(seed)
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":  # torch.manual_seed goes through all backends, a hundred times slower
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)
    numpy = sys.modules.get("numpy")  # torch imports it where it is installed
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
    with device:
        yield


def perturb(model: nn.Module, seed: int) -> None:
    """Scale every parameter, element by element, by a random factor between 0.75 and 1.25."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                generator = torch.Generator(parameter.device).manual_seed(seed)
                factors = torch.rand(parameter.shape, generator=generator, device=parameter.device)
                parameter.mul_((0.75 + factors / 2).to(parameter.dtype))
