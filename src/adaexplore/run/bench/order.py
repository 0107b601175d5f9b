"""Collecting answers: which are judged, on which problems, in which order."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, zip_longest
from pathlib import Path

from adaexplore.core.bench import BenchEntry, LeftOutAnswer
from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import Answer, Benchmark, BenchmarkTask
from adaexplore.core.settings.config import Config
from adaexplore.problems.benchmarks.selection import TaskSelection
from adaexplore.store.bench import BenchManifest, create_bench

_ALL = TaskSelection()
_NO_TASK = "no task of the checkout has its key"


@dataclass(frozen=True, slots=True)
class BenchOrder:
    """The answers to judge.

    `data` is a checkout of the benchmark, None where the answers bring their problems with them.
    `collections` maps a name to a folder of answers. Of each, the answers to the tasks of
    `selection` are judged, and of those as many as its sample has. With `or_looser`, an answer that
    is wrong by its rounding is judged in the looser precision classes too. `server` is the address
    of the service that judges, empty for this machine.
    """

    benchmark: Benchmark
    collections: Mapping[str, Path]
    data: Path | None = None
    selection: TaskSelection = _ALL
    or_looser: bool = False
    server: str = ""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """An answer with its collection and its problem."""

    collection: str
    answer: Answer
    task: BenchmarkTask


def collect(order: BenchOrder, path: Path, config: Config, command: str) -> BenchManifest:
    """Write the folder of an order: its manifest, its problems and its answers; judge nothing.

    Collections take turns in the order, so that a run that is cut short has judged an equal part of
    each. Raises `BadInputError` where nothing is to be judged, or the folder cannot be made.
    """
    known, excluded = _of_data(order)
    left_out: list[LeftOutAnswer] = []
    bound = {
        name: _bound(order, name, _AnswerFolder(folder, known, excluded), left_out)
        for name, folder in order.collections.items()
    }
    every = [*known.values(), *(one.task for some in bound.values() for one in some)]
    meant = order.selection.keys_of(every)
    turns = [_drawn(order, name, some, meant) for name, some in bound.items()]
    chosen = [one for one in chain.from_iterable(zip_longest(*turns)) if one]
    if order.server:
        _require_one_file(chosen)
    files: dict[str, str] = {}
    manifest = BenchManifest(
        benchmark=order.benchmark.name,
        command=command,
        config=config.model_dump(mode="json", exclude_defaults=True, exclude={"run", "budget"}),
        or_looser=order.or_looser,
        entries=tuple(_entry(one, files) for one in chosen),
        left_out=tuple(left_out),
        server=order.server,
    )
    create_bench(path, manifest, files)
    return manifest


def _require_one_file(chosen: Sequence[_Chosen]) -> None:
    """Raise `BadInputError` for what a service cannot judge."""
    for one in chosen:
        key = one.task.key
        if one.task.files or not one.task.name.endswith(".py"):
            raise BadInputError(
                f"--server: {key} is not one Python file; choose others by --problems, or judge "
                "without --server"
            )
        if one.answer.test:
            raise BadInputError(
                f"--server: the benchmark's own test of the answer to {key} runs on the machine "
                "itself; judge without --server"
            )


def _of_data(order: BenchOrder) -> tuple[dict[str, BenchmarkTask], dict[str, str]]:
    """Return the tasks of the checkout by key, and the reasons of those left out."""
    if order.data is None:
        return {}, {}
    tasks = {task.key: task for task in order.benchmark.tasks(order.data)}
    return tasks, {one.key: one.reason for one in order.benchmark.excluded(order.data)}


@dataclass(frozen=True, slots=True)
class _AnswerFolder:
    """A folder of answers, and what is known of their tasks: those loaded, and reasons by key."""

    folder: Path
    tasks: Mapping[str, BenchmarkTask]
    excluded: Mapping[str, str]


def _bound(
    order: BenchOrder, name: str, known: _AnswerFolder, left_out: list[LeftOutAnswer]
) -> list[_Chosen]:
    """Return the answers of a collection with their tasks; add those without to `left_out`."""
    every = order.benchmark.answers(known.folder, order.data)
    found = [answer for answer in every if not answer.unreadable]
    left_out += [
        LeftOutAnswer(name, one.key, one.place, one.unreadable) for one in every if one.unreadable
    ]
    if every and not found:
        raise BadInputError(
            f"--answers {known.folder}: none of {len(every)} answers can be judged; "
            f"{every[0].place}: {every[0].unreadable}"
        )
    if not found:
        raise BadInputError(f"--answers {known.folder}: no answer to {order.benchmark.name} in it")
    pairs = [(answer, answer.task or known.tasks.get(answer.key)) for answer in found]
    bound = [_Chosen(name, answer, task) for answer, task in pairs if task]
    lost = [answer for answer, task in pairs if not task]
    if not bound:
        why = known.excluded.get(lost[0].key)
        raise BadInputError(
            f"--answers {known.folder}: {len(found)} answers and none of their problems; "
            + (f"{lost[0].key} {why}" if why else "give the benchmark's checkout by --data")
        )
    left_out += [
        LeftOutAnswer(name, answer.key, answer.place, known.excluded.get(answer.key, _NO_TASK))
        for answer in lost
    ]
    return bound


def _drawn(
    order: BenchOrder, name: str, bound: Sequence[_Chosen], meant: Collection[str]
) -> Sequence[_Chosen]:
    """Return the answers to the tasks that are meant in a random order, as many as asked for."""
    wanted = [one for one in bound if one.task.key in meant]
    if not wanted:
        have = ", ".join(sorted({one.task.category for one in bound}))
        folder = order.collections[name]
        raise BadInputError(f"--answers {folder}: none to what is chosen; it has {have}")
    random.Random(order.selection.seed).shuffle(wanted)
    return wanted[: order.selection.sample] if order.selection.sample else wanted


def place_task(task: BenchmarkTask, folder: str, files: dict[str, str]) -> str:
    """Add the files of a task, in `folder` by category; return the name of the problem's file.

    A task of several files has a folder of its own.
    """
    parent = f"{folder}{task.category.replace(' ', '_').replace('/', '_')}/"
    if task.files:
        parent += f"{task.name.removesuffix('.py')}/"
        files.update({f"{parent}{name}": text for name, text in task.files.items()})
    files[f"{parent}{task.name}"] = task.text
    return f"{parent}{task.name}"


def _entry(one: _Chosen, files: dict[str, str]) -> BenchEntry:
    """Return the entry of an answer; add the files of its problem and of itself."""
    own = f"{one.collection}/" if one.answer.task else ""
    problem = place_task(one.task, f"problems/{own}", files)
    digest = sha256(one.answer.source.encode()).hexdigest()
    answer = f"answers/{one.collection}/{one.task.key.replace('/', '_')}-{digest[:8]}.py"
    files[answer] = one.answer.source
    test, script, gold = one.answer.test, "", ""
    if test:
        script = f"tests/{answer.removeprefix('answers/')}"
        gold = f"tests/{one.task.key.replace('/', '_')}.py"
        files |= {script: test.script, gold: test.gold}
    return BenchEntry(
        collection=one.collection,
        key=one.task.key,
        category=one.task.category,
        place=one.answer.place,
        problem=problem,
        answer=answer,
        digest=digest,
        adapted=one.answer.adapted,
        theirs=one.answer.theirs,
        script=script,
        gold=gold,
        golden_us=test.golden_us if test else None,
    )
