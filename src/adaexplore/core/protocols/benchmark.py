"""The protocol of a benchmark: its tasks, and answers to them in folders of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class BenchmarkTask:
    """A problem of a benchmark, as the text of a file that a loader of problems takes.

    `key` is unique in the benchmark, such as "2/37", and `category` is the part that results are
    counted by, such as "level 2". `name` is the file's, with its suffix.
    """

    key: str
    category: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A candidate for the task `key`, as the source of a module with `ModelNew`.

    `place` says where in its folder it was found. `task` is the task that the collection brings
    with it, None where the benchmark's own is meant. `adapted` marks source to which a module was
    added that calls the answer's function.
    """

    key: str
    place: str
    source: str
    task: BenchmarkTask | None = None
    adapted: bool = False


class Benchmark(Protocol):
    """Reads the tasks of one benchmark, and the answers of others to them.

    It runs none of the code that it reads.
    """

    @property
    def name(self) -> str:
        """The name on the command line."""
        ...

    @property
    def about(self) -> str:
        """One line: the tasks, and how to get them."""
        ...

    def tasks(self, data: Path) -> Sequence[BenchmarkTask]:
        """Return the tasks in a checkout, in order.

        Raises `BadInputError` for a folder that holds none.
        """
        ...

    def answers(self, folder: Path) -> Sequence[Answer]:
        """Return the answers in a folder, in the order of their keys; none where there are none.

        Raises `BadInputError` for an answer that cannot be read.
        """
        ...
