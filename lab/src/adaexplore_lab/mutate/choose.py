"""Which mutants are tried: a sample of each target, drawn by a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

from adaexplore.core import BadInputError
from adaexplore_lab.mutate.mutants import Mutant, mutants


def mutants_of(target: str, root: Path) -> list[Mutant]:
    """Return all mutants of a module or of the modules in a folder, both relative to `root`."""
    path = root / target
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise BadInputError(f"no Python module is at {path}")
    return [
        mutant
        for file in files
        for mutant in mutants(str(file.relative_to(root)), file.read_text(encoding="utf-8"))
    ]


def sample(population: Sequence[Mutant], size: int | None, seed: int) -> list[Mutant]:
    """Return a sample in random order, all of them without a size.

    A mutant's place depends on the seed and on itself alone, so a change of the source moves no
    other mutant into the sample or out of it, but for the last ones.
    """

    def place(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed} {mutant.identity}".encode()).hexdigest()

    return sorted(population, key=place)[:size]


def in_turn(samples: Sequence[Sequence[Mutant]]) -> list[Mutant]:
    """Return the mutants of several samples, one of each in turn."""
    return [mutant for mutant in chain(*zip_longest(*samples)) if mutant is not None]
