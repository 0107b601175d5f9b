"""The files beside the source: what to mutate, mutants that must die, and mutants that cannot.

An entry that no longer fits the source is bad input: it is mended with the source.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core import BadInputError
from adaexplore_lab.mutate.mutants import Mutant


@dataclass(frozen=True, slots=True)
class Plan:
    """What is mutated without other wishes, and the tests by the beginning of a module's path."""

    targets: list[str]
    tests: dict[str, list[str]]


def plan(file: Path) -> Plan:
    """Return the plan in a file."""
    found = _read(file)
    targets, tests = found.get("targets"), found.get("tests")
    if not isinstance(targets, list) or not isinstance(tests, dict):
        raise BadInputError(f"{file}: it needs a list `targets` and a table `tests`")
    return Plan(targets, tests)


def named(file: Path, root: Path) -> list[Mutant]:
    """Return the mutants of a list: each replaces a text that is once in its file by another."""
    found = []
    for entry in _entries(file, "mutant", ("name", "file", "old", "new")):
        source = _source(root, entry["file"], file)
        old, new = entry["old"], entry["new"]
        if source.count(old) != 1:
            raise BadInputError(
                f"{file}: {entry['name']!r}: the text {old!r} is {source.count(old)} times in "
                f"{entry['file']}, not once"
            )
        line = source[: source.index(old)].count("\n") + 1
        mutated = source.replace(old, new)
        found.append(
            Mutant(entry["file"], "", line, "named", old, new, mutated, name=entry["name"])
        )
    return found


def files(file: Path, table: str) -> list[str]:
    """Return the source files that the entries of a table are about."""
    return sorted({entry["file"] for entry in _entries(file, table, ("file",))})


def equivalent(file: Path, mutants: Sequence[Mutant]) -> set[str]:
    """Return the identities of the mutants of `mutants` that a list calls equivalent.

    An entry has the stripped lines of the change, and the reason why nobody could notice it.
    """
    return _listed(file, "equivalent", ("function", "old", "new", "reason"), mutants)


def on_gpu(file: Path, mutants: Sequence[Mutant]) -> set[str]:
    """Return the identities of the mutants of `mutants` that only a GPU could show.

    An entry without lines is about all mutants of a function, one without a function about those of
    a file.
    """
    return _listed(file, "gpu", ("reason",), mutants)


def _listed(file: Path, table: str, fields: Sequence[str], mutants: Sequence[Mutant]) -> set[str]:
    found: set[str] = set()
    mutated = {mutant.path for mutant in mutants}
    for entry in _entries(file, table, ("file", *fields)):
        fitting = {mutant.identity for mutant in mutants if _fits(entry, mutant)}
        if not fitting and entry["file"] in mutated:
            raise BadInputError(f"{file}: no mutant fits this entry any more: {dict(entry)}")
        found |= fitting
    return found


def _fits(entry: Mapping[str, str], mutant: Mutant) -> bool:
    facts = {
        "file": mutant.path,
        "function": mutant.function,
        "old": mutant.removed.strip(),
        "new": mutant.added.strip(),
    }
    return all(entry[key].strip() == facts[key] for key in facts if key in entry)


def _entries(file: Path, table: str, fields: Sequence[str]) -> list[Mapping[str, str]]:
    entries: list[Mapping[str, str]] = _read(file).get(table, [])
    for entry in entries:
        if lacking := [field for field in fields if not isinstance(entry.get(field), str)]:
            raise BadInputError(
                f"{file}: an entry of {table!r} has no text {lacking[0]!r}: {entry}"
            )
    return entries


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadInputError(f"cannot read {file}: {error}") from error


def _source(root: Path, path: str, file: Path) -> str:
    try:
        return (root / path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"{file}: cannot read {path}: {error.strerror}") from error
