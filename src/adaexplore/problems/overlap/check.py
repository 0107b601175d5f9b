"""Problems that may be trained on: those that are no benchmark's, as far as that can be told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaexplore.problems.overlap.confined import STRUCTURE_PRELOAD, structure_of
from adaexplore.problems.overlap.structures import benchmark_structures, structures_in
from adaexplore.sandbox import ForkServer


@dataclass(frozen=True, slots=True)
class Overlap:
    """The structure of a problem, and why it is left out.

    `structure` is empty where the graph cannot be traced. `why` is empty for a problem that may be
    trained on.
    """

    structure: str
    why: str


class OverlapCheck:
    """Compares problems with the benchmarks that the package knows, and with those in folders.

    A problem that cannot be traced overlaps as far as anybody can tell. The sources run confined,
    each once.
    """

    def __init__(self, server: ForkServer, benchmarks: Mapping[str, str]) -> None:
        self._server = server
        self._benchmarks = benchmarks
        self._found: dict[str, Overlap] = {}

    def __call__(self, name: str, source: str) -> Overlap:
        """Return the overlap of a problem in KernelBench form."""
        if source not in self._found:
            self._found[source] = self._check(name, source)
        return self._found[source]

    def _check(self, name: str, source: str) -> Overlap:
        traced = structure_of(self._server, name, source)
        if traced["why"]:
            return Overlap("", f"it cannot be compared with benchmarks: {traced['why']}")
        structure: str = traced["structure"]
        like = self._benchmarks.get(structure)
        return Overlap(structure, f"it has the structure of {like}" if like else "")


@contextmanager
def overlap_check(folders: Sequence[Path] = ()) -> Iterator[OverlapCheck]:
    """Open a check, also against the problems in `folders`.

    Raises `BadInputError` for a folder without Python files.
    """
    server = ForkServer.start(STRUCTURE_PRELOAD)
    try:
        benchmarks = benchmark_structures()
        for folder in folders:
            benchmarks |= structures_in(folder, server, lambda _name, _why: None)
        yield OverlapCheck(server, benchmarks)
    finally:
        server.close()


def left_out_line(whys: Iterable[str]) -> str:
    """Return one line that counts problems that were left out, empty for none."""
    found = [why for why in whys if why]
    alike = sum("structure of" in why for why in found)
    parts = [f"{alike} with a benchmark's structure"] if alike else []
    if len(found) > alike:
        parts.append(f"{len(found) - alike} that cannot be compared with benchmarks")
    return f"left out: {len(found)} problems, {', '.join(parts)}" if found else ""
