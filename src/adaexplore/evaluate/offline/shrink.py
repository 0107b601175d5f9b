"""Variants of a problem with smaller sizes, so that Triton's interpreter can run its candidates.

This executes the problem's file: call it in a worker (`job`), never in a trusted process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from adaexplore.core import codec
from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Access, Mode, Problem, Workload
from adaexplore.evaluate.offline.reference_sizes import (
    Choice,
    ReferenceSizes,
    Size,
    SizeVariant,
)

_NO_ACCESS = Access()
_DEFAULT = Workload()
HALVINGS = range(12, -1, -1)
"""Numbers of halvings to try; all sizes are halved alike, so that divisibility is kept."""


def job(request: dict[str, Any]) -> dict[str, Any]:
    """Run `variants` as a job (see `sandbox.jobs`): {"problem"} to {"variants": [...]}.

    A reference that does not run on the meta device has no variants.
    """
    problem = Problem.from_json(request["problem"])
    try:
        found = variants(
            problem.source,
            mode=problem.mode,
            access=problem.access,
            workloads=problem.workloads,
        )
    except BadProblemError:
        found = []
    return {"variants": codec.write(tuple(found))}


def from_job(reply: Mapping[str, Any]) -> tuple[SizeVariant, ...]:
    """Return the variants in a reply of `job`."""
    return codec.read(tuple[SizeVariant, ...], reply["variants"])


def variants(
    source: str,
    *,
    mode: Mode = "as-built",
    access: Access = _NO_ACCESS,
    workloads: Sequence[Workload] = (_DEFAULT,),
) -> list[SizeVariant]:
    """Return variants of a reference with other sizes, in the order in which to try them.

    "small" always exists; its sizes are halved until it fits the budget. "odd" has sizes next to
    those, primes where they are legal, because `<` in place of `<=` has no effect where blocks
    divide sizes. For kernels written for their sizes, "own" is the unchanged reference, and
    "batch-only" reduces only the batch. A variant equal to an earlier one is left out.

    Raises `BadProblemError` if the unchanged reference does not run on the meta device.
    """
    with tempfile.TemporaryDirectory() as folder:
        sizes = ReferenceSizes(source, mode, access, workloads, Path(folder))
        small = _small(sizes)
        chosen = {
            "small": small,
            "odd": _odd(sizes, small),
            "own": {},
            "batch-only": _batch_only(sizes),
        }
        found: dict[str, SizeVariant] = {}
        for name, choice in chosen.items():
            variant = sizes.variant(name, choice)
            found.setdefault(variant.source, variant)
    return list(found.values())


def _small(sizes: ReferenceSizes) -> Choice:
    """Halve all sizes until they fit; if they cannot fit, halve each size as often as is legal."""
    best: Choice = {}
    cost = None
    for times in HALVINGS:
        choice = {size: size.halved(times) for size in sizes.sizes}
        found = sizes.cost(choice)
        if found is None:
            continue
        if cost is None or found.fits:
            best, cost = choice, found
        if not found.fits:
            break
    return best if cost is not None and cost.fits else _each_as_small_as_legal(sizes, best)


def _each_as_small_as_legal(sizes: ReferenceSizes, best: Choice) -> Choice:
    """Halve one size after the other, the largest first, until all fit or none can be halved."""
    before = None
    while best != before:
        before = best
        for group in sizes.groups:
            best = _as_small_as_legal(sizes, best, group)
            found = sizes.cost(best)
            if found is not None and found.fits:
                return best
    return best


def _as_small_as_legal(sizes: ReferenceSizes, best: Choice, group: list[Size]) -> Choice:
    for times in HALVINGS:
        choice = {**best, **{size: size.halved(times) for size in group}}
        if all(choice[size] >= best.get(size, size.value) for size in group):
            break
        if sizes.cost(choice) is not None:
            return choice
    return best


def _odd(sizes: ReferenceSizes, small: Choice) -> Choice:
    """Make each size of a small choice as uneven as is legal; all at once where possible."""
    limit = sizes.cost(small)
    near = {size: small.get(size, size.value) for size in sizes.sizes}

    def is_good(choice: Choice) -> bool:
        found = sizes.cost(choice)
        return found is not None and (found.fits or limit is None or not limit.fits)

    for primes in ({size: next(_primes(near[size], step)) for size in near} for step in (1, -1)):
        if is_good(primes):
            return primes
    choice = near
    for group in sizes.groups:
        if any(choice[size] % 2 for size in group):
            continue
        for other in _uneven(near[group[0]]):
            tried = {**choice, **dict.fromkeys(group, other)}
            if is_good(tried):
                choice = tried
                break
    return choice


def _batch_only(sizes: ReferenceSizes) -> Choice:
    """Halve the batch until it fits, or to the least batch."""
    best: Choice = {}
    for times in HALVINGS:
        choice = {size: size.halved(times) for size in sizes.sizes if size.is_batch}
        found = sizes.cost(choice)
        if found is None:
            continue
        if not best or found.fits:
            best = choice
        if not found.fits:
            break
    return best


def _uneven(value: int) -> Iterator[int]:
    """Yield alternatives to a size: primes, other odd numbers, odd multiples of a part of it."""
    yield next(_primes(value, 1))
    yield next(_primes(value, -1))
    yield from (n for n in range(value + 1, value + 6) if n % 2)
    yield from (value // part * (part + 1) for part in (2, 4, 8) if value % part == 0)
    yield from (value // part * (part - 1) for part in (4, 8) if value % part == 0)


def _primes(start: int, step: int) -> Iterator[int]:
    """Return the odd primes from `start`, or 3, upwards or downwards."""
    numbers = count(max(start, 3)) if step > 0 else range(max(start, 3), 2, step)
    return (n for n in numbers if all(n % d for d in range(2, int(n**0.5) + 1)))
