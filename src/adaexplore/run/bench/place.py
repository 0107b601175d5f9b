"""The places where the data of benchmarks is looked for, and what is there."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import Benchmark

PLACES = ("", "benchmarks")
"""Folders, from the current one, that may hold the data of a benchmark under its usual name."""


@dataclass(frozen=True, slots=True)
class BenchmarkState:
    """A benchmark on this machine: its data, and the packages that it needs.

    `data` is the folder of its data, None where there is none. `missing` maps each package that is
    not installed to the part that needs it.
    """

    benchmark: Benchmark
    data: Path | None
    tasks: int
    excluded: int
    installed: tuple[str, ...]
    missing: dict[str, str]


def find_data(benchmark: Benchmark) -> Path | None:
    """Return the folder of a benchmark's data in a usual place, None where there is none."""
    places = [Path(place) / benchmark.needs.folder for place in PLACES]
    return next((place for place in places if place.is_dir()), None)


def require_data(benchmark: Benchmark, given: Path | None) -> Path:
    """Return the folder of a benchmark's data; raise `BadInputError`, with the way to get it."""
    found = given or find_data(benchmark)
    if found is None:
        raise BadInputError(
            f"{benchmark.name}: its data is neither in {' nor in '.join(_looked(benchmark))}; give "
            f"it by --data DIR, or get it: {benchmark.needs.get}"
        )
    return found


def _looked(benchmark: Benchmark) -> list[str]:
    return [f"{Path(place) / benchmark.needs.folder}/" for place in PLACES]


def state_of(benchmark: Benchmark, data: Path | None = None) -> BenchmarkState:
    """Return the state of a benchmark, whose data may lie in `data` or in its folder there."""
    inside = data / benchmark.needs.folder if data else None
    found, tasks, excluded = None, 0, 0
    for place in (inside, data, find_data(benchmark)):
        if place and place.is_dir():
            try:
                tasks, excluded = len(benchmark.tasks(place)), len(benchmark.excluded(place))
            except BadInputError:  # a folder of something else
                continue
            found = place
            break
    packages = {name: find_spec(name) is not None for name in benchmark.needs.packages}
    return BenchmarkState(
        benchmark=benchmark,
        data=found,
        tasks=tasks,
        excluded=excluded,
        installed=tuple(name for name, there in packages.items() if there),
        missing={n: benchmark.needs.packages[n] for n, there in packages.items() if not there},
    )
