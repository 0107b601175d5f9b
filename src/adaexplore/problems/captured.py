"""Captured modules on disk: a problem as data, its files beside it by their names."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Access, Problem
from adaexplore.core.protocols.loader import LoadOptions

CAPTURED = "captured.json"


class CapturedModule:
    """The file `captured.json` in the folder of a captured module."""

    name = "captured module"

    def can_load(self, path: Path) -> bool:
        """Return whether the file is one of a captured module, by its name."""
        return path.name == CAPTURED

    def load(self, path: Path, options: LoadOptions) -> Problem:
        """Return the problem, for the device of the module."""
        try:
            problem = Problem.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadProblemError(f"{path}: is no captured module ({error})") from None
        if problem.device != options.device:
            raise BadProblemError(
                f"{path}: was captured on {problem.device}, and is for that device; leave out "
                f"--device {options.device}"
            )
        asked = replace(
            problem,
            language=options.language,
            checks=options.checks,
            seed=options.seed,
            mode=options.mode,
            target=options.target,
        )
        return in_folder(asked, path.parent)


def in_folder(problem: Problem, folder: Path) -> Problem:
    """Return a captured problem with its files, by their names, in `folder`."""
    place = folder.resolve()
    return _placed(problem, lambda name: str(place / name))


def write_captured(problem: Problem, folder: Path) -> Path:
    """Write a problem whose files lie in `folder`; return the file."""
    file = folder / CAPTURED
    bare = _placed(problem, lambda name: name)
    file.write_text(json.dumps(bare.to_json(), indent=1) + "\n", encoding="utf-8")
    return file


def _placed(problem: Problem, place: Callable[[str], str]) -> Problem:
    def placed(file: str) -> str:
        return file and place(Path(file).name)

    return replace(
        problem,
        access=Access(file=placed(problem.access.file)),
        weights=placed(problem.weights),
        workloads=tuple(replace(one, file=placed(one.file)) for one in problem.workloads),
    )
