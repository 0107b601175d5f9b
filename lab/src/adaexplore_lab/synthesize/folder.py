"""A folder of tasks: a Python file for each, and an index of what is known about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adaexplore.core import BadInputError
from adaexplore_lab.synthesize.task import SyntheticTask
from adaexplore_lab.synthesize.validate import Validated

INDEX = "tasks.json"
FORMAT_VERSION = 1


class TaskFolder:
    """Tasks that were kept, on disk; another run into the same folder adds to them.

    Raises `BadInputError` for a folder or an index that cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._entries = _entries(path / INDEX)
        except OSError as error:
            raise BadInputError(f"{path}: cannot be used for tasks: {error.strerror}") from None

    @property
    def known(self) -> dict[str, str]:
        """The structures that are there, with the tasks that have them."""
        return {entry["structure"]: entry["name"] for entry in self._entries}

    def tasks(self) -> list[SyntheticTask]:
        """Every task that is there, in the order they were added."""
        return [self._task(entry) for entry in self._entries]

    def add(self, found: Validated) -> None:
        """Write a task and its index entry; the index is replaced atomically."""
        task = found.task
        entry = task.to_json() | {"structure": found.structure, "labels": dict(found.labels)}
        entries = [*self._entries, entry]
        draft = self.path / f"{INDEX}.new"
        text = json.dumps({"format": FORMAT_VERSION, "tasks": entries}, indent=1)
        try:
            (self.path / f"{task.name}.py").write_text(task.source, encoding="utf-8")
            draft.write_text(f"{text}\n", encoding="utf-8")
            draft.replace(self.path / INDEX)
        except OSError as error:
            raise BadInputError(
                f"{self.path}: cannot write {task.name}: {error.strerror}"
            ) from None
        self._entries = entries

    def _task(self, entry: dict[str, Any]) -> SyntheticTask:
        file = self.path / f"{entry['name']}.py"
        try:
            source = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInputError(
                f"{file}: cannot be read, though {INDEX} names it: {error}"
            ) from None
        return SyntheticTask(
            entry["name"], source, entry["origin"], tuple(entry["ops"]), entry["seed"]
        )


def _entries(index: Path) -> list[dict[str, Any]]:
    try:
        data = json.loads(index.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise BadInputError(f"{index} is no index of tasks: {error}") from None
    match data:
        case {"format": 1, "tasks": [*entries]} if all(map(_is_entry, entries)):
            return entries
    raise BadInputError(f"{index} is no index of tasks that can be read; name another folder")


def _is_entry(entry: Any) -> bool:
    match entry:
        case {
            "name": str(),
            "origin": str(),
            "ops": [*_],
            "seed": int() | None,
            "structure": str(),
        }:
            return True
    return False
