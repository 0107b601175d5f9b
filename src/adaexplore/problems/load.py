"""Loaders of problems, one for each format.

A loader of another format is added to `LOADERS`; callers use `load_problem`.
"""

from __future__ import annotations

import os
from pathlib import Path

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Checks, Language, Mode, Problem, TargetName
from adaexplore.core.protocols.loader import Loader, LoadOptions
from adaexplore.problems.captured import CapturedModule
from adaexplore.problems.flashinfer.loader import FlashInfer
from adaexplore.problems.kernelbench import KernelBench
from adaexplore.problems.multikernelbench import MultiKernelBench

LOADERS: list[Loader] = [CapturedModule(), FlashInfer(), MultiKernelBench(), KernelBench()]
"""The loaders in the order in which they are asked; the last takes what no other does."""

EXAMPLE = Path(__file__).with_name("example.py")
"""A problem that comes with the package."""

_CHECKS = Checks()


def load_problem(
    path: str | os.PathLike[str],
    *,
    device: str,
    language: Language,
    checks: Checks = _CHECKS,
    seed: int = 0,
    mode: Mode = "as-built",
    target: TargetName | None = None,
    allow: tuple[str, ...] = (),
    definition: str = "",
    workloads: str = "",
    timed: str = "",
) -> Problem:
    """Load the problem at `path` with the first loader that can.

    `allow` names further files and folders of the user that candidates may read. `definition`,
    `workloads` and `timed` choose in a dataset (see `LoadOptions`). A file that needs
    code or data of the user is run once, in a process of its own, to find out what it needs. Raises
    `BadProblemError`, in one line, for what cannot be loaded.
    """
    file = Path(path)
    loader = next((one for one in LOADERS if one.can_load(file)), LOADERS[-1])
    choice = (definition, workloads, timed)
    if any(choice) and not isinstance(loader, FlashInfer):
        raise BadProblemError(
            f"{file}: is no dataset: leave out --definition, --workloads and --timed"
        )
    options = LoadOptions(device, language, checks, seed, mode, target, allow, *choice)
    return loader.load(file, options)
