"""The protocol of a loader of problems."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from adaexplore.core.problem import Checks, Language, Mode, Problem, TargetName

_CHECKS = Checks()


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The parts of a problem that its file does not say.

    `allow` names further files and folders of the user that candidates may read. `definition` is
    the name of one in a dataset; `workloads` and `timed` choose among its workloads, empty for the
    usual choice (see `problems.flashinfer.choice`).
    """

    device: str
    language: Language
    checks: Checks = _CHECKS
    seed: int = 0
    mode: Mode = "as-built"
    target: TargetName | None = None
    allow: tuple[str, ...] = ()
    definition: str = ""
    workloads: str = ""
    timed: str = ""


class Loader(Protocol):
    """Turns the files of one format into problems."""

    @property
    def name(self) -> str:
        """The name of the format, for messages."""
        ...

    def can_load(self, path: Path) -> bool:
        """Return whether the file or folder at `path` is of this format; run none of its code."""
        ...

    def load(self, path: Path, options: LoadOptions) -> Problem:
        """Return the problem at `path`, complete: its workloads named, its access settled.

        The user's code runs in a process of its own, if it must. Raises `BadProblemError`, in one
        line that says where the fault is and how to mend it.
        """
        ...
