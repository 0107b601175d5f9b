"""Concurrent updates of one memory: no run loses the rules of another."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.rule import Rule
from adaexplore.memory.extract import counting, explaining
from adaexplore.memory.files import load_memory, save_memory
from adaexplore.memory.merge import merge_memories
from adaexplore.memory.unchecked.statements import is_statements


def update(path: Path, learned: Iterable[Rule]) -> list[Rule]:
    """Add rules to a memory, new or not; return its rules.

    A rule for what another rule of the memory explains already is counted there. Waits for others
    that are updating the same memory, in whichever process. Raises `BadInputError` for a file that
    is no memory or cannot be written.
    """
    with updating(path) as rules:
        for rule in learned:
            others = [known for known in rules if known.name != rule.name]
            there = len(others) < len(rules)
            same = None if there else explaining(others, rule.signature, rule.language)
            new = counting(same, rule.tasks, rule.support) if same else rule
            rules[:] = merge_memories(rules, [new])
    return rules


def check_updatable(path: Path) -> None:
    """Raise `BadInputError` for a file that is no memory, or one of another form."""
    if is_statements(path):
        raise BadInputError(
            f"{path} has lines statement||count, which stay as they are: make a memory of them "
            f"(adaexplore memory merge {path} -o seen.toml), and update that"
        )
    if path.exists():
        load_memory(path)


@contextmanager
def updating(path: Path) -> Iterator[list[Rule]]:
    """Yield the rules of a memory, to be changed in place, and save them; nobody else updates it.

    Nothing is saved where an exception ends the update. Raises `BadInputError` as `update` does.
    """
    check_updatable(path)
    with _locked(path):
        rules = load_memory(path) if path.exists() else []
        yield rules
        save_memory(path, rules)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the memory's lock, a file beside it: the memory itself is replaced at every update."""
    lock = path.with_name(f".{path.name}.lock")
    try:
        file = lock.open("w")
    except OSError as error:
        raise BadInputError(f"cannot write beside {path}: {error.strerror}") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
