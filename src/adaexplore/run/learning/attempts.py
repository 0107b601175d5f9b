"""Attempts at tasks: a small run for each, made or continued."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.client import BudgetSpentError, ModelClient
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Status
from adaexplore.run.job import Job, NewRun, Servers, Slice
from adaexplore.run.proposers import Plan
from adaexplore.run.workers import map_parallel
from adaexplore.store import RunDirectory


@dataclass(frozen=True, slots=True)
class TaskRun:
    """A problem, the folder of its run, and the content of the run.

    `plan` names one proposer: a model, or `MANUAL`, whose prompts and replies are files in `asks`.
    A run ends after its planned steps, or with the first candidate that is correct, or compiles and
    cannot be run here.
    """

    problem: Problem
    run: Path
    config: Config
    plan: Plan
    command: str
    asks: Path

    def new_run(self) -> NewRun:
        """Return the content of its run."""
        return NewRun(self.problem, self.config, self.plan, lambda _: self.command)


@dataclass(frozen=True, slots=True)
class Attempted:
    """The result of a task: `right` says that a candidate is correct.

    `unknown` says that one compiles and was not run, so that nothing is known of it. `lost` is the
    reason that the task was not attempted, and `waits` are prompts that a person has to answer
    first.
    """

    task: TaskRun
    right: bool = False
    unknown: bool = False
    lost: str = ""
    waits: tuple[Path, ...] = ()


def attempt_all(
    tasks: Sequence[TaskRun], clients: Mapping[str, ModelClient], parallel: int
) -> Iterator[Attempted]:
    """Attempt tasks, `parallel` at once; yield each result when it is there.

    Raises `BudgetSpentError` once the attempts in flight have ended, and `InfrastructureError`
    where the machinery is gone.
    """
    spent: BudgetSpentError | None = None
    with closing(Servers()) as servers:
        unless_spent = takewhile(lambda _: not spent, tasks)
        for landed in map_parallel(unless_spent, partial(_attempt, servers, clients), parallel):
            match landed.error:
                case None:
                    yield landed.result
                case BadProblemError() as error:
                    yield Attempted(landed.key, lost=str(error))
                case BudgetSpentError() as error:
                    spent = error
                case error:
                    raise error
    if spent:
        raise spent


def _attempt(servers: Servers, clients: Mapping[str, ModelClient], task: TaskRun) -> Attempted:
    def spent() -> str | None:
        return "no candidate is left to repair" if _is_ended(job) else None

    steps = task.config.planned_steps
    with Job(task.run, task.new_run, servers, asks=task.asks, steps=steps) as job:
        if MANUAL in task.plan.proposers:
            files = job.answer(Slice(), lambda run: _missing_asks(job, run))
            if not _is_done(job):
                return Attempted(task, waits=tuple(files))
        elif not _is_done(job):
            job.search(Slice(clients=clients, spent=spent))
        if not _is_done(job):
            raise BudgetSpentError("the budget is spent")
        statuses = _statuses(job)
        return Attempted(task, "passed" in statuses, "not_run" in statuses)


def _missing_asks(job: Job, run: RunDirectory) -> int:
    """Return 1 where a task needs another attempt and no prompt waits for an answer."""
    return 0 if _is_done(job) or run.store.asks("open") else 1


def _statuses(job: Job) -> set[Status]:
    return {node.evaluation.status for node in job.nodes()[0]}


def _is_ended(job: Job) -> bool:
    """Return True once a candidate did not fail: there is nothing to repair."""
    return bool({"passed", "not_run"} & _statuses(job))


def _is_done(job: Job) -> bool:
    return _is_ended(job) or len(job.nodes()[0]) >= job.most_steps
