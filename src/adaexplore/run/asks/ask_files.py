"""Prompts and replies as files: written for a person or an agent, and taken back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.ask import MANUAL, Ask
from adaexplore.core.errors import BadInputError
from adaexplore.core.files import write_whole
from adaexplore.core.node import planned_steps
from adaexplore.core.protocols.client import Finish, Prompt, Reply
from adaexplore.core.settings.config import Config
from adaexplore.run.asks.ledger import Ledger, Turn
from adaexplore.run.proposers import (
    Plan,
    check_answered,
    model_proposers,
    try_templates,
    with_templates,
)
from adaexplore.store import RunDirectory, Store, open_run

REPLY_SUFFIX = ".reply.md"
_NAME = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.reply\.md")
_LIKE_A_REPLY = re.compile(r"(?!\.).*reply.*(?<!~)", re.IGNORECASE)
"""Names of replies, and of files that are meant as such; an editor's own files are not."""
_PROMPT_NAME = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}\.md")
_MOST_BYTES = 4 << 20


def write_prompts(directory: RunDirectory, count: int, folder: Path) -> dict[Path, str]:
    """Open `count` asks, write every open prompt, and return the files with their purposes."""
    ledger = ledger_of(directory)
    require_left(ledger, directory, count)
    make_folder(folder)
    with ledger.together():
        for _ in range(count):
            ledger.prompt(MANUAL)
    files, opened = {}, ledger.open()
    followers = Counter(map(ledger.batches.waits_for, opened))
    for ask in opened:
        if not _is_answerable(ledger, ask):
            continue
        number, turn = ledger.turn(ask.id)
        if isinstance(turn, Prompt):
            file = _write(folder, ask.id, number, turn)
            more = f" for this and {followers[ask.id]} more prompts" if followers[ask.id] else ""
            files[file] = f"{ask.step_kind} step, {turn.label}{more}"
    return files


def _is_answerable(ledger: Ledger, ask: Ask) -> bool:
    """Return False for a seed that was stopped half-way, and an ask that waits for outlines."""
    return ask.proposer == MANUAL and ledger.batches.waits_for(ask) is None


def take_replies(path: Path, folder: Path) -> list[str]:
    """Take the replies to open asks from a folder; return a line for each without a candidate.

    Raises `BadInputError` for a file that is no reply.
    """
    lines = []
    with open_run(path) as directory:
        ledger = ledger_of(directory)
        for file in _replies_to({ask.id for ask in ledger.open()}, folder):
            with _named(file):
                told = tell_one(directory, ledger, file)
            if told.is_news and not told.is_candidate:
                lines.append(f"{file.name}: {told.line}")
    return lines


def unanswered(store: Store, folder: Path) -> list[int]:
    """The open asks to whose last prompt there is no reply in a folder, by their ids."""
    asks = [record.ask for record in store.asks("open")]
    opened = [ask.id for ask in asks if ask.proposer == MANUAL]  # not a seed, stopped half-way
    turns = {ask_id: len(store.calls(ask_id)) + 1 for ask_id in opened}
    return [i for i in opened if not (folder / f"{i}.{turns[i]}{REPLY_SUFFIX}").exists()]


def check_replies(store: Store, folder: Path) -> None:
    """Raise `BadInputError` for a file that is no reply, by its name or its text.

    The texts of replies that were taken are not read.
    """
    for file in _replies_to({record.ask.id for record in store.asks("open")}, folder):
        with _named(file):
            read_reply(file)


def _replies_to(waiting: Collection[int], folder: Path) -> list[Path]:
    """Return the files in a folder that reply to asks with these ids, and misnamed ones."""
    matches = [(file, _NAME.fullmatch(file.name)) for file in folder.glob(f"*{REPLY_SUFFIX}")]
    return sorted(file for file, match in matches if match is None or int(match[1]) in waiting)


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Name the file in a complaint about it."""
    try:
        yield
    except BadInputError as error:
        raise BadInputError(f"{file}: {error}") from None


def has_misnamed(folder: Path) -> bool:
    """Return True for a folder with a reply whose name matches no prompt."""
    return any(not _NAME.fullmatch(file.name) for file in folder.glob(f"*{REPLY_SUFFIX}"))


def ledger_of(directory: RunDirectory) -> Ledger:
    """The ledger of an open run, for prompts that no machinery is needed for.

    Raises `BadInputError` for a run that is no matter of ask and tell.
    """
    run = directory.store.run()
    check_answered(run, directory.path)
    return Ledger(directory.store, model_proposers(Plan.of(run), run.config))


def change_plan(directory: RunDirectory, given: Config) -> None:
    """Change the planned steps or the prompt templates of a run that is answered by hand.

    Raises `BadInputError` for any other run, for templates that cannot be used, and for fewer steps
    than are made and asked for.
    """
    store = directory.store
    run = store.run()
    check_answered(run, directory.path)
    made, waiting = len(planned_steps(store.nodes())), len(store.asks("open", "queued"))
    if given.steps is not None and given.steps < made + waiting:
        raise BadInputError(
            f"--steps {given.steps}: {made} steps are made and {waiting} are asked for; give at "
            f"least {made + waiting}"
        )
    if given.prompts:
        plan = with_templates(Plan.of(run), given.prompts)
        try_templates(plan, run)
        store.set_plan(plan.to_json())
    if given.steps is not None:
        store.set_config(run.config.with_steps(given.steps))


def require_left(ledger: Ledger, directory: RunDirectory, count: int) -> None:
    """Raise `BadInputError` unless `count` more steps may be asked for."""
    if count > max(ledger.left, 0):
        planned, made = directory.store.run().steps, ledger.searched
        waiting = len(directory.store.asks("open", "queued"))
        raise BadInputError(
            f"{directory.path}: of {planned} planned steps {made} are made and {waiting} are asked "
            f"for, so there are {max(ledger.left, 0)} to ask for, not {count}; plan more with "
            "--steps, or write the open prompts again with -n 0"
        )


def make_folder(folder: Path) -> None:
    """Make a folder for prompts; `BadInputError` if it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"{folder}: cannot write prompts there: {error.strerror}") from None


def prompt_text(prompt: Prompt) -> str:
    """Return a prompt as one text to read and to paste."""
    if len(prompt.messages) == 1:
        return prompt.messages[0].text
    return "\n\n".join(f"# {m.role}\n\n{m.text}" for m in prompt.messages)


@dataclass(frozen=True, slots=True)
class WaitingPrompt:
    """A prompt that waits for an answer: its ask, its turn (from 0), its purpose and its text."""

    ask_id: int
    turn: int
    purpose: str
    text: str


def waiting_prompts(directory: RunDirectory) -> list[WaitingPrompt]:
    """Return the prompts of a run that wait for an answer; the run is only read."""
    store = directory.store
    opened = [record.ask for record in store.asks("open") if record.ask.proposer == MANUAL]
    if not opened:
        return []
    ledger, found = ledger_of(directory), []
    for ask in (ask for ask in opened if _is_answerable(ledger, ask)):
        prompts, proposal = ledger.replay(ask)
        if proposal is None:
            purpose = f"{ask.step_kind} step, {prompts[-1].label}"
            found.append(WaitingPrompt(ask.id, len(prompts) - 1, purpose, prompt_text(prompts[-1])))
    return found


def open_prompts(directory: RunDirectory, count: int) -> None:
    """Ask for steps until `count` wait for answers, or all that are planned are asked for."""
    ledger = ledger_of(directory)
    waiting = sum(ask.proposer == MANUAL for ask in ledger.open())
    with ledger.together():
        for _ in range(min(count - waiting, ledger.left)):
            ledger.prompt(MANUAL)


def write_prompt(folder: Path, ask_id: int, number: int, text: str) -> Path:
    """Write prompt `number` (from 0) of an ask as a file, whole to paste; return the file."""
    file = folder / f"{ask_id}.{number + 1}.md"
    write_whole(file, text + "\n")
    return file


def _write(folder: Path, ask_id: int, number: int, prompt: Prompt) -> Path:
    """Write a prompt; raise `BadInputError` where that fails: the ask stays open."""
    try:
        return write_prompt(folder, ask_id, number, prompt_text(prompt))
    except BadInputError as error:
        raise BadInputError(
            f"{error}; free some space and write the open prompts again with -n 0"
        ) from None


def _write_first(ledger: Ledger, asks: Sequence[Ask], folder: Path) -> list[str]:
    """Write the first prompts of the asks that can be answered; return the names of the files."""
    names = []
    for ask in asks:
        if _is_answerable(ledger, ask):
            _, turn = ledger.turn(ask.id)
            assert isinstance(turn, Prompt)
            names.append(_write(folder, ask.id, 0, turn).name)
    return names


def reply_files(paths: list[Path]) -> list[Path]:
    """List the reply files among `paths`, by ask and turn; misnamed ones are among them."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = [f for f in path.iterdir() if _LIKE_A_REPLY.fullmatch(f.name)]
            if not found:
                raise BadInputError(
                    f"{path} holds no replies: answer 7.1.md in a file 7.1{REPLY_SUFFIX} beside it"
                )
            files += found
        elif path.is_file():
            files.append(path)
        else:
            raise BadInputError(f"{path} does not exist")
    return sorted(files, key=lambda f: [int(n) for n in re.findall(r"\d+", f.name)])


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a reply, as a line for a person; whether it was new, and holds a candidate."""

    line: str
    is_news: bool = True
    is_candidate: bool = False


def tell_one(directory: RunDirectory, ledger: Ledger, file: Path) -> Told:
    """Take one reply.

    Raises `BadInputError`, and records nothing, for a file that is no reply to an open prompt.
    """
    given = read_reply(file)
    ask_id, number = given.ask_id, given.turn
    waiting = [ask for ask in ledger.open() if ledger.batches.waits_for(ask) == ask_id]
    turn = tell_text(directory, ledger, ask_id, number, given.text)
    if isinstance(turn, Prompt):
        after = _write(file.parent, ask_id, number + 1, turn)
        told = f"taken; there is a follow-up, {turn.label}: {after.name}"
        others = _write_first(ledger, waiting, file.parent)
        return Told(f"{told}; and for other steps: {', '.join(others)}" if others else told)
    if turn is None:
        return Told("told before", is_news=False)
    if turn.failure:
        return Told(f"taken; no candidate: {turn.failure}")
    lines = len(turn.candidate.source.splitlines())
    return Told(f"taken; a candidate of {lines} lines is queued", is_candidate=True)


@dataclass(frozen=True, slots=True)
class FiledReply:
    """The reply in a file: the ask, the turn (from 0) of its prompt, and the text."""

    ask_id: int
    turn: int
    text: str


def read_reply(file: Path) -> FiledReply:
    """Read a reply; raise `BadInputError` for a file that is none, by its name or its text."""
    match = _NAME.fullmatch(file.name)
    if match is None:
        if _PROMPT_NAME.fullmatch(file.name):
            raise BadInputError(f"that is the prompt; its answer goes to {file.stem}{REPLY_SUFFIX}")
        raise BadInputError(f"name it after its prompt: 7.1.md is answered in 7.1{REPLY_SUFFIX}")
    return FiledReply(int(match[1]), int(match[2]) - 1, _reply_text(file))


def _reply_text(file: Path) -> str:
    """Return the text of a reply; raise `BadInputError` for a file that has none."""
    try:
        if not file.is_file():
            raise BadInputError("is no regular file; write the reply into a file of this name")
        if file.stat().st_size > _MOST_BYTES:
            raise BadInputError(f"larger than {_MOST_BYTES >> 20} MiB: that is no reply")
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInputError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInputError("not UTF-8 text; save the reply as UTF-8") from None
    if not text.strip():
        raise BadInputError("is empty; write the reply into it, or delete it")
    return text


def tell_text(
    directory: RunDirectory, ledger: Ledger, ask_id: int, number: int, text: str
) -> Turn | None:
    """Take the reply to prompt `number` (from 0) of an ask; None for a reply that was told before.

    Raises `BadInputError` as `Ledger.tell` does.
    """
    told = directory.store.calls(ask_id)
    if 0 <= number < len(told) and told[number].reply.text == text:
        return None
    finish: Finish = "complete" if text.strip() else "empty"
    return ledger.tell(ask_id, number, Reply(text, MANUAL, finish))
