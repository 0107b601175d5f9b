"""Learning: the loop from failures to rules (group, reduce, ask, verify, merge).

Everything is in a folder, a few files for each case: `ID.json`, the case and what came of it;
`ID.1.md`, what is asked; `ID.1.reply.md`, the answer, from a model or from whoever writes it there.
What was done once is not done again: a case is reduced, and each of its prompts answered, once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.files import write_whole
from adaexplore.core.rule import Rule
from adaexplore.memory.author import Written, written
from adaexplore.memory.check import Checker
from adaexplore.memory.extract import (
    Case,
    Failure,
    FailureGroup,
    case_id,
    case_of,
    counted,
    grouped,
)
from adaexplore.memory.files import load_memory
from adaexplore.memory.update import update
from adaexplore.run.learning.prompt_files import Ask, PromptFiles

MAX_EVALUATIONS = 200
"""Evaluations to reduce one failing candidate; each takes a fraction of a second."""

Tell = Callable[[str], None]
"""Is told in one line of everything that happens."""


@dataclass(slots=True)
class Learned:
    """Result of learning: new rules, known rules that explain failures, and the rest.

    `open` are the prompts that wait for an answer; `dropped` says by case why there is no rule, and
    `refused` why there is no case, for failures that do not recur here.
    """

    rules: list[Rule] = field(default_factory=list)
    counted: list[Rule] = field(default_factory=list)
    open: list[Path] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def learn(
    failures: Iterable[Failure],
    memory: Path,
    folder: Path,
    checker: Checker,
    *,
    ask: Ask | None = None,
    least_tasks: int = 1,
    most_evaluations: int | None = None,
    tell: Tell = lambda _: None,
    by: str = "",
) -> Learned:
    """Make rules of failures, and of the open cases of the folder, and add them to a memory.

    A rule is asked for where so many tasks met the failure; its exemplar is reduced within so many
    evaluations, by default `MAX_EVALUATIONS`. Without `ask`, prompts are left in the folder for
    somebody to answer. The memory has every rule as soon as it is true. `by` is noted with each
    case that is decided.

    Raises `BadInputError` for a memory or a folder that cannot be used, `InfrastructureError` where
    the checker's machinery is gone, and what `ask` raises; what was learned until then stays.
    """
    files = PromptFiles(folder, ask)
    learned = Learned(open=files.open)
    known = load_memory(memory) if memory.exists() else []
    for group in grouped(failures):
        rule = counted(known, group)
        if rule:
            learned.counted.append(rule)
        elif len(group.tasks) >= least_tasks:
            most = most_evaluations or MAX_EVALUATIONS
            _take(group, folder, checker, most, learned, tell)
    if learned.counted:
        update(memory, learned.counted)
    for path, case in _open_cases(folder):
        known = load_memory(memory) if memory.exists() else []
        result = _talk(case, files, checker, known)
        if result is None:
            continue
        if result.rule:
            update(memory, [result.rule])
            (learned.counted if result.known else learned.rules).append(result.rule)
            again = "known: " if result.known else ""
            tell(f"{case.id}: {again}{result.rule.name}: {result.rule.statement}")
        else:
            learned.dropped[case.id] = result.why
            tell(f"{case.id}: no rule: {result.why}")
        name = result.rule.name if result.rule else ""
        decided = {"rule": name, "why": result.why, "known": result.known, "by": by}
        _write(path, {"case": case.to_json(), **decided})
    return learned


def _take(
    group: FailureGroup,
    folder: Path,
    checker: Checker,
    most_evaluations: int,
    learned: Learned,
    tell: Tell,
) -> None:
    """Make a case of a group, unless the folder has it."""
    name = case_id(group)
    path = folder / f"{name}.json"
    if path.exists():
        return
    try:
        case = case_of(group, checker, most_evaluations=most_evaluations)
    except ValueError as error:
        learned.refused[name] = str(error)
        tell(f"{name}: no case: {error}")
        return
    _write(path, {"case": case.to_json()})
    tell(
        f"{name}: {case.failed.status}, reduced from {case.before.nodes} nodes "
        f"({case.before.lines} lines) to {case.after.nodes} ({case.after.lines}) "
        f"in {case.evaluations} evaluations"
    )


def _open_cases(folder: Path) -> Iterator[tuple[Path, Case]]:
    """Yield the cases of a folder that have no result yet."""
    for path in sorted(folder.glob("*.json")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if "rule" not in data:
                yield path, Case.from_json(data["case"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInputError(f"{path} is no case: {error!r}; remove it") from None


def _talk(
    case: Case, files: PromptFiles, checker: Checker, known: Sequence[Rule]
) -> Written | None:
    """Return the result of a case; None while a prompt waits for its answer."""
    talk, turn = written(case, checker, known), 1
    try:
        prompt = next(talk)
        while reply := files.reply(f"{case.id}.{turn}", prompt):
            prompt, turn = talk.send(reply), turn + 1
    except StopIteration as end:
        result: Written = end.value
        return result
    return None


def _write(path: Path, data: object) -> None:
    write_whole(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
