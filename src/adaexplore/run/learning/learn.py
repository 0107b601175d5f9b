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

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import Prompt, Reply
from adaexplore.core.rule import Rule
from adaexplore.memory.author import Written, written
from adaexplore.memory.check import Checker
from adaexplore.memory.extract import Case, Failure, Group, case_id, case_of, counted, grouped
from adaexplore.memory.files import load_memory, write_whole
from adaexplore.memory.update import update

Ask = Callable[[Prompt], Reply]
Tell = Callable[[str], None]
"""Is told in one line of everything that happens."""


@dataclass(slots=True)
class Learned:
    """Result of learning: new rules, known rules that explain failures, and the rest.

    `open` are the prompts that wait for an answer; `dropped` says by case why there is no rule.
    """

    rules: list[Rule] = field(default_factory=list)
    counted: list[Rule] = field(default_factory=list)
    open: list[Path] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)


def learn(
    failures: Iterable[Failure],
    memory: Path,
    folder: Path,
    checker: Checker,
    *,
    ask: Ask | None = None,
    least_tasks: int = 1,
    most_evaluations: int = 200,
    tell: Tell = lambda _: None,
) -> Learned:
    """Make rules of failures, and of the open cases of the folder, and add them to a memory.

    A rule is asked for where so many tasks met the failure; its exemplar is reduced within so many
    evaluations. Without `ask`, prompts are left in the folder for somebody to answer. The memory
    has every rule as soon as it is true. Raises `BadInputError` for a memory or a folder that
    cannot be used, `InfrastructureError` where the checker's machinery is gone, and what `ask`
    raises; what was learned until then stays.
    """
    learned = Learned()
    known = load_memory(memory) if memory.exists() else []
    _make(folder)
    for group in grouped(failures):
        exemplar = group.exemplar
        rule = counted(known, exemplar.signature, group.tasks, group.support)
        if rule:
            learned.counted.append(rule)
        elif len(group.tasks) >= least_tasks:
            _take(group, folder, checker, most_evaluations, learned, tell)
    if learned.counted:
        update(memory, learned.counted)
    for path, case in _open_cases(folder):
        known = load_memory(memory) if memory.exists() else []
        result = _talk(case, folder, checker, ask, learned, known)
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
        _write(path, {"case": case.to_json(), "rule": name, "why": result.why})
    return learned


def _take(
    group: Group,
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
        learned.dropped[name] = str(error)
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
    case: Case,
    folder: Path,
    checker: Checker,
    ask: Ask | None,
    learned: Learned,
    known: Sequence[Rule],
) -> Written | None:
    """Return the result of a case; None while a prompt waits for its answer."""
    talk = written(case, checker, known)
    try:
        prompt, turn = next(talk), 1
        while True:
            answer = folder / f"{case.id}.{turn}.reply.md"
            if not answer.exists():
                question = folder / f"{case.id}.{turn}.md"
                write_whole(question, _as_text(prompt))
                if ask is None:
                    learned.open.append(question)
                    return None
                reply = ask(prompt)
                if reply.finish != "complete":
                    prompt = talk.send(reply)
                    continue
                write_whole(answer, reply.text)
            prompt, turn = talk.send(_read(answer)), turn + 1
    except StopIteration as end:
        result: Written = end.value
        return result


def _as_text(prompt: Prompt) -> str:
    return "\n\n".join(f"# {message.role}\n\n{message.text}" for message in prompt.messages) + "\n"


def _read(path: Path) -> Reply:
    text = path.read_text(encoding="utf-8", errors="replace")
    return Reply(text, MANUAL, "complete" if text.strip() else "empty")


def _write(path: Path, data: object) -> None:
    write_whole(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot make {folder}: {error.strerror}") from None
