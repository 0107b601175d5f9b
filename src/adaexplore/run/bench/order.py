"""Collecting answers: which are judged, on which problems, in which order."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, zip_longest
from pathlib import Path

from adaexplore.core.bench import BenchEntry
from adaexplore.core.config import Config
from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import Answer, Benchmark, BenchmarkTask
from adaexplore.store.bench import BenchManifest, create_bench


@dataclass(frozen=True, slots=True)
class BenchOrder:
    """The answers to judge.

    `data` is a checkout of the benchmark, None where the answers bring their problems with them.
    `collections` maps a name to a folder of answers. `levels` are categories, or what their names
    end with ("2"); all without one. `sample` is the number of answers of each collection, drawn
    under `seed`; 0 for all. With `or_looser`, an answer that is wrong by its rounding is judged in
    the looser precision classes too.
    """

    benchmark: Benchmark
    collections: Mapping[str, Path]
    data: Path | None = None
    levels: tuple[str, ...] = ()
    sample: int = 0
    seed: int = 0
    or_looser: bool = False


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
    tasks = {task.key: task for task in order.benchmark.tasks(order.data)} if order.data else {}
    turns = [_chosen(order, name, folder, tasks) for name, folder in order.collections.items()]
    chosen = [one for one in chain.from_iterable(zip_longest(*turns)) if one]
    files: dict[str, str] = {}
    entries = tuple(_entry(one, files) for one in chosen)
    dumped = config.model_dump(mode="json", exclude_defaults=True, exclude={"run", "budget"})
    manifest = BenchManifest(order.benchmark.name, command, dumped, order.or_looser, entries)
    create_bench(path, manifest, files)
    return manifest


def _chosen(
    order: BenchOrder, name: str, folder: Path, tasks: Mapping[str, BenchmarkTask]
) -> Sequence[_Chosen]:
    """Return the answers of a collection in a random order, as many as the sample has."""
    found = order.benchmark.answers(folder, order.data)
    if not found:
        raise BadInputError(f"--answers {folder}: no answer to {order.benchmark.name} in it")
    known = list(_with_tasks(name, found, tasks))
    if not known:
        raise BadInputError(
            f"--answers {folder}: {len(found)} answers and none of their problems; give the "
            "benchmark's checkout by --data"
        )
    wanted = [one for one in known if _is_wanted(one.task.category, order.levels)]
    if not wanted:
        have = ", ".join(sorted({one.task.category for one in known}))
        raise BadInputError(f"--level {' '.join(order.levels)}: {name} has answers to {have}")
    random.Random(order.seed).shuffle(wanted)
    return wanted[: order.sample] if order.sample else wanted


def _with_tasks(
    name: str, found: Sequence[Answer], tasks: Mapping[str, BenchmarkTask]
) -> Iterator[_Chosen]:
    for answer in found:
        task = answer.task or tasks.get(answer.key)
        if task:
            yield _Chosen(name, answer, task)


def _is_wanted(category: str, levels: Sequence[str]) -> bool:
    return not levels or any(level in (category, category.rpartition(" ")[2]) for level in levels)


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
    )
