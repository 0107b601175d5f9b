"""The choice of tasks: by category, by lists of problems such as `2 1-50,77`, by a sample."""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import BenchmarkTask, Exclusion

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_NUMBER = re.compile(r"0*(\d+)")


@dataclass(frozen=True, slots=True)
class TaskSelection:
    """The tasks that are meant; all of a benchmark without anything given.

    `categories` are names of categories, or what they end with ("2" for "level 2"). `lists` are
    lists of problems: an optional category, then numbers, ranges of numbers and patterns of keys or
    names by commas, such as `2 1-50,77` or `gelu*`; or a file with such a list in each line.
    `sample` tasks are drawn under `seed`, 0 for all.
    """

    categories: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    sample: int = 0
    seed: int = 0

    def of(
        self, tasks: Sequence[BenchmarkTask], excluded: Sequence[Exclusion]
    ) -> tuple[list[BenchmarkTask], list[Exclusion]]:
        """Return the chosen tasks, and what is left out of those chosen, in their order.

        Raises `BadInputError` for a category or a part of a list that names none, and where all
        that is chosen is left out.
        """
        meant = [_Named(task.key, task.category, task.name) for task in tasks]
        meant += [_Named(one.key, one.category, one.key) for one in excluded]
        keys = self._keys(meant)
        chosen = [task for task in tasks if task.key in keys]
        left_out = [one for one in excluded if one.key in keys]
        if left_out and not chosen:
            raise BadInputError(f"{left_out[0].key}, like all that is chosen: {left_out[0].reason}")
        if self.sample and self.sample < len(chosen):
            drawn = random.Random(self.seed).sample(range(len(chosen)), self.sample)
            chosen = [chosen[i] for i in sorted(drawn)]
        return chosen, left_out

    def keys_of(self, tasks: Sequence[BenchmarkTask]) -> set[str]:
        """Return the keys of the tasks that are meant, before a sample is drawn."""
        return self._keys([_Named(task.key, task.category, task.name) for task in tasks])

    def _keys(self, tasks: Sequence[_Named]) -> set[str]:
        known = list(dict.fromkeys(one.category for one in tasks))
        for category in self.categories:
            _refuse_unknown(category, known)
        meant = [one for one in tasks if is_in(one.category, self.categories)]
        if self.lists:
            meant = [one for line in self._lines() for one in _listed(line, meant)]
        return {one.key for one in meant}

    def _lines(self) -> list[str]:
        lines: list[str] = []
        for text in self.lists:
            file = Path(text)
            if file.suffix and file.is_file():
                read = file.read_text(encoding="utf-8").splitlines()
                lines += [line for line in read if line.strip() and not line.startswith("#")]
            else:
                lines.append(text)
        return lines


def is_in(category: str, chosen: Sequence[str]) -> bool:
    """Return whether a category is among those chosen, by its name or the end of it."""
    return not chosen or any(one in (category, category.rpartition(" ")[2]) for one in chosen)


def _refuse_unknown(category: str, known: Sequence[str]) -> None:
    if not any(is_in(one, [category]) for one in known):
        near = difflib.get_close_matches(category, known, n=3, cutoff=0.5) or known
        raise BadInputError(f"--category {category}: no such category; known: {', '.join(near)}")


@dataclass(frozen=True, slots=True)
class _Named:
    """A task by its names."""

    key: str
    category: str
    name: str

    def is_meant(self, part: str) -> bool:
        """Return whether a number, a range of numbers or a pattern means the task."""
        last = self.key.rpartition("/")[2]
        if span := _RANGE.fullmatch(part):
            number = _NUMBER.match(last)
            low, high = int(span[1]), int(span[2] or span[1])
            return number is not None and low <= int(number[1]) <= high
        names = (self.key, last, self.name, self.name.removesuffix(".py"))
        return any(fnmatchcase(name, part) for name in names)


def _listed(line: str, tasks: Sequence[_Named]) -> list[_Named]:
    """Return the tasks of a list; raise `BadInputError` where one of its parts has none."""
    category, parts = _split(line)
    own = [task for task in tasks if not category or is_in(task.category, [category])]
    if not own:
        _refuse_unknown(category, list(dict.fromkeys(task.category for task in tasks)))
    for part in parts:
        if not any(task.is_meant(part) for task in own):
            where = f" in {category}" if category else ""
            raise BadInputError(f"--problems {line!r}: {part} is no problem{where}")
    return [task for task in own if any(task.is_meant(part) for part in parts)]


def _split(line: str) -> tuple[str, list[str]]:
    """Return the category of a list, empty for none, and its parts."""
    category, _, parts = re.sub(r"\s*,\s*", ",", line.strip()).rpartition(" ")
    return category.strip(), [part for part in parts.split(",") if part]
