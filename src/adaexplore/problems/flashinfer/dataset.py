"""The files of a dataset: its definitions, and the workloads of each.

Two layouts are read. FlashInfer-Bench: `definitions/<op>/<name>.json` beside
`workloads/<op>/<name>.jsonl`. SOL-ExecBench: a folder for each task with `definition.json` and
`workload.jsonl`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadProblemError
from adaexplore.problems.flashinfer.schema import BenchWorkload, Definition, named

TASK = "definition.json"
"""The name of the definition's file in the folder of a task of SOL-ExecBench."""
DEFINITIONS, WORKLOADS = "definitions", "workloads"
TASK_WORKLOADS = "workload.jsonl"


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A definition's file; the paths of its workloads' data begin at `root`."""

    file: Path
    root: Path

    @property
    def name(self) -> str:
        """The name of the definition, which its file or its folder has."""
        return self.file.parent.name if self.file.name == TASK else self.file.stem

    @property
    def is_task(self) -> bool:
        """Return whether this is a task of SOL-ExecBench."""
        return self.file.name == TASK

    @property
    def category(self) -> str:
        """The folder that it lies in: an op type, or a part of SOL-ExecBench."""
        return (self.file.parent.parent if self.is_task else self.file.parent).name

    def definition(self) -> Definition:
        """Read the definition; raise `BadProblemError` for a file that holds none."""
        return Definition.from_json(_json(_text(self.file), str(self.file)), str(self.file))

    @property
    def workloads_file(self) -> Path:
        """The place of the file of its workloads, which need not exist."""
        if self.is_task:
            return self.file.with_name(TASK_WORKLOADS)
        return self.root / WORKLOADS / self.category / f"{self.name}.jsonl"

    def workloads(self) -> list[BenchWorkload]:
        """Read its workloads; there are none where it has no such file."""
        file = self.workloads_file
        if not file.is_file():
            return []
        lines = enumerate(_text(file).splitlines(), start=1)
        return named([_workload(line, f"{file}, line {i}") for i, line in lines if line.strip()])


def is_dataset(path: Path) -> bool:
    """Return whether a folder holds definitions."""
    return path.is_dir() and any(_files(path))


def entry_of(path: Path) -> DatasetEntry | None:
    """Return the entry of a definition's file or a task's folder; None where it is in none."""
    file = path / TASK if path.is_dir() else path
    if file.suffix != ".json" or not file.is_file():
        return None
    if file.name == TASK:
        return DatasetEntry(file, file.parent)
    folder = next((each for each in file.parents if each.name == DEFINITIONS), None)
    return DatasetEntry(file, folder.parent) if folder else None


def dataset_entries(path: Path, op_type: str = "") -> list[DatasetEntry]:
    """Return the entries of a dataset in the order of their paths; those of one op type only.

    Raises `BadProblemError` for a folder without definitions, or an op type without any.
    """
    found = [entry for file in _files(path) if (entry := entry_of(file))]
    if not found:
        raise BadProblemError(
            f"{path}: no definitions/<op>/<name>.json of FlashInfer-Bench and no "
            "<task>/definition.json of SOL-ExecBench in it"
        )
    wanted = [entry for entry in found if op_type in ("", entry.category)]
    if not wanted:
        known = ", ".join(sorted({entry.category for entry in found}))
        raise BadProblemError(f"{path}: no op type {op_type}; it has {known}")
    return wanted


def entry_named(path: Path, name: str) -> DatasetEntry:
    """Return the entry of a definition; raise `BadProblemError`, with near names, for none."""
    known = {entry.name: entry for entry in dataset_entries(path)}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.3) or sorted(known)[:3]
    if not name:
        raise BadProblemError(
            f"{path}: holds {len(known)} definitions; choose one by --definition NAME, such as "
            f"{near[0]}"
        )
    raise BadProblemError(f"{path}: no definition {name}; near are {', '.join(near)}")


def _files(path: Path) -> Sequence[Path]:
    tasks = (file for depth in range(1, 4) for file in path.glob(f"{'*/' * depth}{TASK}"))
    return sorted([*path.glob(f"{DEFINITIONS}/*/*.json"), *tasks])


def _workload(line: str, where: str) -> BenchWorkload:
    return BenchWorkload.from_json(_json(line, where), where)


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadProblemError(f"{where}: is not JSON: {error}") from None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadProblemError(f"{file}: cannot be read: {error}") from None
