"""Growth: searches of tasks, each of which sees the rules that the tasks before it left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.core.files import write_whole
from adaexplore.core.node import Node, planned_steps
from adaexplore.core.protocols.client import BudgetSpentError, ModelClient
from adaexplore.core.verdict.evaluation import Failed, Passed
from adaexplore.run.job import Job, Servers, Slice
from adaexplore.run.learning.attempts import TaskRun
from adaexplore.run.learning.lessons import Lessons, Taught
from adaexplore.run.workers import Workers
from adaexplore.search.headroom import stop_reason
from adaexplore.store import RunDirectory


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """What is kept of a task that was searched and learned from; see `Taught` for the lessons.

    `correct` steps have a correct kernel; `failures` counts the others by status.
    """

    name: str
    steps: int
    correct: int
    failures: Mapping[str, int] = field(default_factory=dict)
    learned: tuple[str, ...] = ()
    counted: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Grown:
    """The result of a task: its record, or why there is none yet.

    `earlier` says that the record was there before. `lost` is the reason that a task cannot be
    judged, and `waits` are prompts that a person has to answer first.
    """

    task: TaskRun
    record: TaskRecord | None = None
    earlier: bool = False
    lost: str = ""
    waits: tuple[Path, ...] = ()


def grow(
    tasks: Sequence[TaskRun],
    lessons: Lessons,
    clients: Mapping[str, ModelClient],
    folder: Path,
    parallel: int = 1,
) -> Iterator[Grown]:
    """Search tasks in their order, `parallel` at once, and learn from each when it ends.

    A task begins when one before it has ended and been learned from, or its prompts would wait for
    a person: with `parallel` 1 every task sees all rules of those before it. Each step is proposed
    with the rules that the memory has then. `folder` keeps a record of each task that is through.

    Raises `BudgetSpentError` once the tasks in flight have ended, and `InfrastructureError` where
    the machinery is gone.
    """
    left, workers, spent = iter(tasks), Workers[TaskRun](), None
    under_way = waiting = 0
    with closing(Servers()) as servers:
        search = partial(_grow, servers, clients, lessons, folder)
        while True:
            while not spent and under_way + waiting < parallel and (task := next(left, None)):
                workers.begin(task, partial(search, task))
                under_way += 1
            if not under_way:
                break
            landed = workers.next()
            under_way -= 1
            match landed.error:
                case None:
                    waiting += bool(landed.result.waits)
                    yield landed.result
                case BadProblemError() as error:
                    yield Grown(landed.key, lost=str(error))
                case BudgetSpentError() as error:
                    spent = error
                case error:
                    raise error
    if spent:
        raise spent


def _grow(
    servers: Servers,
    clients: Mapping[str, ModelClient],
    lessons: Lessons,
    folder: Path,
    task: TaskRun,
) -> Grown:
    """Search a task and learn from it, as far as it goes now."""
    path = folder / f"{task.problem.name}.json"

    steps = task.config.planned_steps
    with Job(
        task.run, task.new_run, servers, asks=task.asks, steps=steps, rules=lessons.rules
    ) as job:
        if path.exists():
            lessons.meet(task.problem.name, task.problem, job.nodes()[0])
            return Grown(task, _read(path), earlier=True)
        waits = _search(job, task, clients, steps)
        if waits:
            return Grown(task, waits=waits)
        nodes = job.nodes()[0]
    taught = lessons.learn(task.problem.name, task.problem, nodes)
    if taught.open:
        return Grown(task, waits=taught.open)
    record = _record(task.problem.name, planned_steps(nodes), taught)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asdict(record), indent=1) + "\n")
    return Grown(task, record)


def _search(
    job: Job, task: TaskRun, clients: Mapping[str, ModelClient], steps: int
) -> tuple[Path, ...]:
    """Make the steps of a task, one at a time; return the prompts that wait.

    Raises `BudgetSpentError` where a step cannot be paid for.
    """
    while (made := _made(job)) < steps:
        if MANUAL in task.plan.proposers:
            files = job.answer(Slice(), lambda run: _missing_asks(run, steps))
            if files and _made(job) < steps:
                return tuple(files)
            continue
        reason = job.search(Slice(until=made + 1, clients=clients))
        if _made(job) == made:
            if stop_reason(*job.nodes(), task.config):
                break
            raise BudgetSpentError(reason or "no step could be made")
    return ()


def _made(job: Job) -> int:
    return len(planned_steps(job.nodes()[0]))


def _missing_asks(run: RunDirectory, steps: int) -> int:
    """Return 1 where a task needs another step and no prompt waits for an answer."""
    made = len(planned_steps(run.store.nodes()))
    return 0 if made >= steps or run.store.asks("open") else 1


def _record(name: str, nodes: Sequence[Node], taught: Taught) -> TaskRecord:
    failures: Counter[str] = Counter(
        node.evaluation.status
        for node in nodes
        if isinstance(node.evaluation, Failed) and node.evaluation.status != "not_run"
    )
    return TaskRecord(
        name,
        len(nodes),
        sum(isinstance(node.evaluation, Passed) for node in nodes),
        dict(failures),
        taught.learned,
        taught.counted,
        taught.dropped,
    )


def _read(path: Path) -> TaskRecord:
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return TaskRecord(**{**data, "learned": tuple(data["learned"])})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{path} is no record of a task: {error!r}; remove it") from None
