"""The kernels that a search starts from: files, released kernels, and runs of others or one's own.

They are judged before the first step, as nodes of the tree, and count as no step of the plan.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from adaexplore.core.ask import AskRecord
from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadInputError
from adaexplore.core.files import why_unread
from adaexplore.core.node import ROOT_ID, START, Node, StepKind
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.proposer import Context, Dialogue
from adaexplore.core.protocols.store import RunRecord
from adaexplore.llm.code import ReplyError, check_module
from adaexplore.run.asks.ledger import Ledger
from adaexplore.store import Store, read_run
from adaexplore.store.directory import holds_run

_NUMBER = "start"
"""Key of a proposal's settings for the number of the starting kernel."""
_LEVEL = re.compile(r"level_?(\d+)")
_PROBLEM_NUMBER = re.compile(r"(\d+)_")


@dataclass(frozen=True, slots=True)
class Start:
    """A kernel to start from: its source, its place in words, and its place among the others.

    `parent` is the number of the starting kernel that it was made from, counted from 0, None for a
    first one.
    """

    source: str
    place: str
    parent: int | None = None
    step_kind: StepKind = "large"

    def to_json(self) -> dict[str, Any]:
        """Return plain data for `Start(**data)`."""
        return asdict(self)


class Starts:
    """The proposer of starting kernels: an ask's seed is the number of its kernel."""

    def __init__(self, starts: Sequence[Start]) -> None:
        self._starts = starts

    def begin(self, context: Context) -> Dialogue:
        """Return the kernel; asks no model."""
        yield from ()
        start = self._starts[context.seed]
        candidate = Candidate(start.source, context.problem.language)
        return Proposal(candidate, START, f"start: {start.place}", {_NUMBER: context.seed})

    def close(self) -> None:
        """Do nothing."""


def starts_of(run: RunRecord) -> tuple[Start, ...]:
    """Return the starting kernels of a recorded run."""
    return tuple(Start(**data) for data in run.plan.get("starts", ()))


def started(nodes: Iterable[Node]) -> dict[int, Node]:
    """Return the nodes of starting kernels by their numbers."""
    return {
        node.proposal.settings[_NUMBER]: node for node in nodes if node.proposal.origin == START
    }


def starts_left(store: Store) -> bool:
    """Return True while a starting kernel of a run is not judged."""
    return len(started(store.nodes())) < len(starts_of(store.run()))


def start_asks(
    ledger: Ledger, store: Store, starts: Sequence[Start], numbers: Sequence[int]
) -> Iterator[AskRecord]:
    """Yield the asks of these kernels, those that a kill left open and new ones, none twice.

    The kernels that they were made from are recorded already.
    """
    left = [record for record in store.asks("open", "queued") if record.ask.proposer == START]
    under_way = {record.ask.seed: record for record in left}
    made = started(ledger.nodes)
    for number in numbers:
        if number in made:
            continue
        if number in under_way:
            yield under_way[number]
            continue
        start = starts[number]
        parent_id = ROOT_ID if start.parent is None else made[start.parent].id
        ask = ledger.ask_at(parent_id, start.step_kind, number, START)
        ledger.begin(ask)
        yield AskRecord(ask, "open")


def generations(starts: Sequence[Start]) -> list[list[int]]:
    """Return the numbers of the kernels by their depth: parents stand before their children."""
    depths: list[int] = []
    for start in starts:
        depths.append(0 if start.parent is None else depths[start.parent] + 1)
    return [
        [number for number, own in enumerate(depths) if own == depth]
        for depth in range(max(depths, default=-1) + 1)
    ]


def read_starts(places: Sequence[str], problem: Path) -> tuple[Start, ...]:
    """Return the kernels in files, folders and runs; `problem` is the file of their problem.

    Of a folder with kernels of several problems (`level2/18.py`) or with runs of the published
    search (`2_18`), those of the problem count; of any other folder, every file that defines
    `ModelNew`.

    Raises `BadInputError`, in one line, for a place without a kernel, and for a named file that
    does not parse or does not define `ModelNew`.
    """
    found: list[Start] = []
    for place in map(Path, places):
        new = tuple(_starts_in(place, problem))
        if not new:
            raise BadInputError(f"--start-from {place}: there is no kernel in it to start from")
        shift = len(found)
        found += [
            one if one.parent is None else replace(one, parent=one.parent + shift) for one in new
        ]
    return tuple(found)


def _starts_in(place: Path, problem: Path) -> Iterator[Start]:
    if not place.exists():
        raise BadInputError(f"--start-from {place}: no such file or folder")
    if holds_run(place) and place.suffix != ".py":
        yield from _of_run(place)
    elif place.is_file():
        source = _read(place)
        _require_kernel(place, source)
        yield Start(source, place.name)
    else:
        yield from _of_folder(place, problem)


def _of_folder(folder: Path, problem: Path) -> Iterator[Start]:
    own = _of_problem(folder, problem)
    if own is not None:
        yield from _starts_in(own, problem)
        return
    files = sorted(folder.glob("*.py"))
    if files and all(file.stem.isdigit() for file in files):
        raise BadInputError(
            f"--start-from {folder}: it has kernels by the number of their problem, and none for "
            f"{problem.stem}; name one of its files"
        )
    for file in files:
        source = _read(file)
        if not _why_no_kernel(source):
            yield Start(source, file.name)


def _of_problem(folder: Path, problem: Path) -> Path | None:
    """Return the place in a folder of many problems that is about this problem, if there is one."""
    number = _PROBLEM_NUMBER.match(problem.stem)
    level = _LEVEL.fullmatch(problem.parent.name)
    if number is None:
        return None
    there = _LEVEL.fullmatch(folder.name)
    names = [] if level and there and there[1] != level[1] else [f"{number[1]}.py"]
    if level:
        names += [f"level{level[1]}/{number[1]}.py", f"{level[1]}_{number[1]}"]
    return next((folder / name for name in names if (folder / name).exists()), None)


def _of_run(path: Path) -> Iterator[Start]:
    """Yield the kernels of a run with the shape of its tree, steps without a kernel left out."""
    with read_run(path) as directory:
        nodes = directory.store.nodes()
    # By step: the number of its kernel, or of its nearest ancestor's.
    numbers: dict[int, int | None] = {ROOT_ID: None}
    made = 0
    for node in nodes:
        parent = numbers[node.parent_id]
        if _why_no_kernel(node.candidate.source):
            numbers[node.id] = parent
            continue
        kind: StepKind = "large" if parent is None or node.step_kind == "large" else "small"
        yield Start(node.candidate.source, f"{path.name}, step {node.id}", parent, kind)
        numbers[node.id] = made
        made += 1


def _read(file: Path) -> str:
    try:
        if why := why_unread(file):
            raise BadInputError(f"--start-from {file}: {why}; give a Python file")
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"--start-from {file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInputError(f"--start-from {file}: not UTF-8 text") from None


def _require_kernel(place: Path, source: str) -> None:
    if why := _why_no_kernel(source):
        raise BadInputError(f"--start-from {place}: {why}")


def _why_no_kernel(source: str) -> str:
    """Return why a source cannot be judged, in one line; empty for a module with `ModelNew`."""
    try:
        check_module(source)
    except ReplyError as error:
        return str(error).partition("\n")[0]
    return ""


def starts_digest(starts: Sequence[Start]) -> str:
    """Return a short text that the same starting kernels share."""
    if not starts:
        return "nothing"
    text = json.dumps([(start.source, start.parent, start.step_kind) for start in starts])
    plural = "s" if len(starts) > 1 else ""
    return f"{len(starts)} kernel{plural} {hashlib.sha256(text.encode()).hexdigest()[:8]}"
