"""The protocol of a benchmark: its tasks, and answers to them in folders of candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from adaexplore.core.bench import TheirVerdict


@dataclass(frozen=True, slots=True)
class BenchmarkTask:
    """A problem of a benchmark, as the text of a file that a loader of problems takes.

    `key` is unique in the benchmark, such as "2/37", and `category` is the part that results are
    counted by, such as "level 2". `name` is the file's, with its suffix. `files` are the texts of
    files that lie beside it, by name. Workloads, tolerances and labels are declared in the text
    (see `problems.declared`).
    """

    key: str
    category: str
    name: str
    text: str
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A task that cannot become a problem, with the reason in one line."""

    key: str
    category: str
    reason: str


@dataclass(frozen=True, slots=True)
class BenchmarkNeeds:
    """The needs of a benchmark: its data, and packages that are no dependency of this one.

    `folder` is the usual name of the data's folder, `get` the command or the address that brings
    it, and `packages` maps each package to the part that needs it.
    """

    folder: str
    get: str
    packages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OwnTest:
    """The test that a benchmark itself makes of an answer, as two programs.

    It calls the answer if `script` comes to its end, and finds it right if that prints what `gold`
    prints, the same with the benchmark's own function. `golden_us` is the time of that function at
    the timed size, as the benchmark measured it on its own machine, None without one.
    """

    script: str
    gold: str
    golden_us: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A candidate for the task `key`, as the source of a module with `ModelNew`.

    `place` says where in its folder it was found. `task` is the task that the collection brings
    with it, None where the benchmark's own is meant. `adapted` marks source to which a module was
    added that calls the answer's function. `theirs` is the verdict that the collection records,
    `test` a test that gives one. `unreadable` says why the source cannot be judged, "" if it can.
    """

    key: str
    place: str
    source: str
    task: BenchmarkTask | None = None
    adapted: bool = False
    theirs: TheirVerdict | None = None
    test: OwnTest | None = None
    unreadable: str = ""


class Benchmark(Protocol):
    """Reads the tasks of one benchmark, and the answers of others to them.

    It runs none of the code that it reads in its own process.
    """

    @property
    def name(self) -> str:
        """The name on the command line."""
        ...

    @property
    def about(self) -> str:
        """One line: the tasks."""
        ...

    @property
    def needs(self) -> BenchmarkNeeds:
        """The data and the packages that it needs."""
        ...

    def tasks(self, data: Path) -> Sequence[BenchmarkTask]:
        """Return the tasks in a checkout, in order.

        Raises `BadInputError`, which names --data, for a folder that holds none.
        """
        ...

    def excluded(self, data: Path) -> Sequence[Exclusion]:
        """Return the tasks in a checkout that `tasks` leaves out, in order, each with its reason.

        Raises `BadInputError` as `tasks` does.
        """
        ...

    def answers(self, folder: Path, data: Path | None) -> Sequence[Answer]:
        """Return the answers in a folder or file, in order; none where there are none.

        `data` is the checkout, for answers that only their tasks can name or bind. Raises
        `BadInputError` for an answer that cannot be read.
        """
        ...
