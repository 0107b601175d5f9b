"""The user's files that a reference needs: found by running it, and tried as a candidate has them.

Both functions are jobs (see `sandbox.jobs`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Inputs, tensors_of
from adaexplore.sandbox.walls.paths import programs

_SYSTEM = tuple(map(Path, ("/proc", "/sys", "/dev", "/etc", "/run", "/var/lib", "/var/cache")))
"""Places that libraries look at by themselves, and do without."""


def find(request: dict[str, Any]) -> dict[str, Any]:
    """Import and construct the reference of {"problem"} in a trusted process.

    Returns {"why", "modules", "reads", "groups"}: modules of the user by name, with their files;
    other files of the user that were opened for reading; and for each of several groups of inputs
    its shapes. Inputs are the judge's alone, so the files behind them are not among these. `why`
    says in one line why the reference cannot be loaded, else it is empty.
    """
    problem = Problem.from_json(request["problem"])
    before, opened = set(sys.modules), _Opened()
    try:
        instance = Instance.of(problem, Path.cwd())
        opened.stop()
        groups = _groups(instance, problem)
    except BadProblemError as error:
        return {"why": str(error), "modules": [], "reads": [], "groups": []}
    modules = {
        name: file
        for name, module in list(sys.modules.items())
        if name not in before and (file := _file_of(module)) and is_users(file)
    }
    modules.pop(instance.module.__name__, None)  # the reference itself is for no candidate to read
    code = {file for file in modules.values() if file.is_file()}
    reads = {file for file in opened.files() if is_users(file)} - code
    reads -= {file for file in reads if file.suffix == ".pyc"}
    return {
        "why": "",
        "modules": [
            [name, f"{file}/" if file.is_dir() else str(file)] for name, file in modules.items()
        ],
        "reads": sorted(map(str, reads)),
        "groups": groups,
    }


def attempt(request: dict[str, Any]) -> dict[str, Any]:
    """Import and construct the reference of {"problem"}, in a process confined as a candidate's.

    Returns {"why"}: in one line why that fails, empty where it does not.
    """
    try:
        Instance.of(Problem.from_json(request["problem"]), Path.cwd())
    except BadProblemError as error:
        return {"why": str(error)}
    return {"why": ""}


def is_users(file: Path) -> bool:
    """Return whether a file belongs to the user: to no program, and not to this process."""
    return not any(file.is_relative_to(place) for place in (*_SYSTEM, *programs(), Path.cwd()))


class _Opened:
    """The files that this process opens for reading, from now until `stop`."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._on = True
        sys.addaudithook(self._note)  # for the life of the process: a job's

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on or event != "open":
            return
        path, _, flags = args
        reading = not isinstance(flags, int) or flags & os.O_ACCMODE == os.O_RDONLY
        if reading and isinstance(path, str | bytes | os.PathLike):
            self._paths.add(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100 - cheap in a hook

    def stop(self) -> None:
        """Note nothing from now on."""
        self._on = False

    def files(self) -> set[Path]:
        """Return the files, as far as they exist, without symbolic links."""
        return {Path(path).resolve() for path in self._paths if Path(path).is_file()}


def _file_of(module: ModuleType) -> Path | None:
    """Return a module's file, or the folder of a package that has none."""
    file = getattr(module, "__file__", None)
    if file:
        return Path(file).resolve()
    folders = list(getattr(module, "__path__", []))
    return Path(folders[0]).resolve() if folders else None


def _groups(instance: Instance, problem: Problem) -> list[str]:
    """Return the shapes of every group of inputs, where the problem's one draw gives several."""
    workload = problem.workloads[0]
    if workload.draw != "get_input_groups()":
        return []
    groups = instance.inputs(problem.seed, workload).args
    if not groups:
        raise BadProblemError(f"{problem.name}.py: get_input_groups() returned no group of inputs")
    labels = []
    for i, group in enumerate(groups):
        if not isinstance(group, list | tuple | dict | Tensor):
            raise BadProblemError(
                f"{problem.name}.py: get_input_groups()[{i}] is of type {type(group).__name__}; "
                "return a list of lists of arguments"
            )
        tensors = tensors_of(Inputs([group], {}))
        labels.append("_".join("x".join(map(str, t.shape)) or "scalar" for t in tensors))
    return labels
