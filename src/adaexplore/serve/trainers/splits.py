"""Splits: the problems that a policy trains on, and those that it is evaluated on.

Without folders of the operator's, a service has a small set that grew from the grammar of
`adaexplore-lab synthesize`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from adaexplore.core.errors import BadInputError
from adaexplore.problems.overlap.check import OverlapCheck, left_out_line, overlap_check
from adaexplore.serve.messages import SOURCE_CHARACTERS, ProblemSource

HELD_OUT: Mapping[str, Literal["validation", "test"]] = {
    "eval": "validation",
    "validation": "validation",
    "test": "test",
}
"""Names of splits that are not trained on, with the types that OpenEnv gives them."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Split:
    """Problems under a name, in the order of their names."""

    name: str
    problems: tuple[ProblemSource, ...]

    @property
    def type(self) -> Literal["train", "validation", "test"]:
        """The type of the split in OpenEnv's words."""
        return HELD_OUT.get(self.name, "train")


def builtin_splits() -> list[Split]:
    """Return the package's own splits, `train` and `eval`."""
    text = (files("adaexplore.serve.trainers") / "tasks.json").read_text(encoding="utf-8")
    return [
        Split(name, tuple(ProblemSource(name=n, source=s) for n, s in problems.items()))
        for name, problems in json.loads(text).items()
    ]


def read_splits(given: Sequence[str]) -> tuple[list[Split], list[str]]:
    """Return the splits of `NAME=FOLDER` texts, and a line on what each leaves out.

    A split that is trained on has no problem with the structure of a benchmark's, or of one that is
    held out, and none that cannot be compared. Raises `BadInputError` for a text of another form,
    for a file that is no problem, and for a split without problems.
    """
    read = [_read(text) for text in given]
    if len({split.name for split in read}) < len(read):
        raise BadInputError("--split: two have the same name; give each its own")
    with overlap_check() as check:
        held_out = {
            structure
            for split in read
            if split.name in HELD_OUT
            for problem in split.problems
            if (structure := check(problem.name, problem.source).structure)
        }
        checked = [_free(split, check, held_out) for split in read]
    return [split for split, _ in checked], [line for _, line in checked if line]


def _read(text: str) -> Split:
    name, equals, folder = text.partition("=")
    if not (equals and _NAME.fullmatch(name)):
        raise BadInputError(f"--split {text}: write NAME=FOLDER, such as train=problems/train")
    found = sorted(Path(folder).glob("*.py"))
    if not found:
        raise BadInputError(f"--split {text}: no Python files with problems in {folder}")
    return Split(name, tuple(_problem(file) for file in found))


def _problem(file: Path) -> ProblemSource:
    if not _NAME.fullmatch(file.stem):
        raise BadInputError(f"{file}: name it with letters, digits, _ and -, at most 64")
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{file}: cannot be read: {error}") from None
    if not 0 < len(source) <= SOURCE_CHARACTERS:
        raise BadInputError(f"{file}: a problem has 1 to {SOURCE_CHARACTERS} characters")
    return ProblemSource(name=file.stem, source=source)


def _free(split: Split, check: OverlapCheck, held_out: set[str]) -> tuple[Split, str]:
    if split.name in HELD_OUT:
        return split, ""
    kept, whys, shared = [], [], 0
    for problem in split.problems:
        found = check(problem.name, problem.source)
        whys.append(found.why)
        if not found.why and found.structure in held_out:
            shared += 1
        elif not found.why:
            kept.append(problem)
    lines = [left_out_line(whys), f"left out: {shared} that are held out" if shared else ""]
    line = "; ".join(part for part in lines if part)
    if not kept:
        raise BadInputError(f"--split {split.name}: no problem is left; {line}")
    return replace(split, problems=tuple(kept)), f"split {split.name}: {line}" if line else ""
