"""Attempts at tasks: a small run of its own for each, made or gone on with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path

from adaexplore.core.ask import MANUAL
from adaexplore.core.client import BudgetSpentError, Client
from adaexplore.core.config import Config
from adaexplore.core.errors import BadProblemError
from adaexplore.core.evaluation import Passed
from adaexplore.core.listener import follow
from adaexplore.core.problem import Problem
from adaexplore.run import ask_files as asks
from adaexplore.run.proposers import Plan, model_proposers, with_memory
from adaexplore.run.records import record_of, settled
from adaexplore.run.search import Search
from adaexplore.run.session import session_on, start_server
from adaexplore.run.workers import map_parallel
from adaexplore.sandbox.process import ForkServer
from adaexplore.store import RunDirectory, make_run, open_run


@dataclass(frozen=True, slots=True)
class Task:
    """A problem, its run's folder, and what the run is made with.

    `plan` names one proposer: a model, or `MANUAL`, whose prompts and replies are files in `asks`.
    A run ends after its planned steps, or with the first candidate that is right.
    """

    problem: Problem
    run: Path
    config: Config
    plan: Plan
    command: str
    asks: Path


@dataclass(frozen=True, slots=True)
class Attempted:
    """What came of a task: it is right, or `lost` says why it was not attempted.

    `waits` are prompts that a person has to answer before anything is known.
    """

    task: Task
    right: bool = False
    lost: str = ""
    waits: tuple[Path, ...] = ()


def attempt_all(
    tasks: Sequence[Task], clients: Mapping[str, Client], parallel: int
) -> Iterator[Attempted]:
    """Attempts tasks of one kind of problem, so many at once; tells of each when it is done.

    Raises `BudgetSpentError` once those under way have landed, and `InfrastructureError` where the
    machinery is gone.
    """
    spent: BudgetSpentError | None = None
    with closing(start_server(tasks[0].problem)) as server:
        unless_spent = takewhile(lambda _: not spent, tasks)
        for landed in map_parallel(unless_spent, partial(_attempt, server, clients), parallel):
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


def _attempt(server: ForkServer, clients: Mapping[str, Client], task: Task) -> Attempted:
    if not task.run.exists():
        _make(server, task)
    if MANUAL in task.plan.proposers:
        return _by_hand(server, task)
    with open_run(task.run) as directory, ExitStack() as stack:
        run = directory.store.run()
        if not _is_done(directory):
            plan = Plan.of(run)
            running = stack.enter_context(session_on(server, run.problem, run.config))
            search = Search(
                directory.store,
                model_proposers(plan, run.config),
                running.evaluator,
                directory.best_path,
                clients=clients,
                spent=lambda: "it is right" if _is_right(directory) else None,
            )
            follow(search.run())
        if not _is_done(directory):
            raise BudgetSpentError("the budget is spent")
        return Attempted(task, _is_right(directory))


def _make(server: ForkServer, task: Task) -> None:
    plan, config = with_memory(task.plan, settled(task.config, task.problem), task.problem)
    with session_on(server, task.problem, config) as running:
        record = record_of(running, task.problem, config, plan, task.command)
    make_run(task.run, record)


def _by_hand(server: ForkServer, task: Task) -> Attempted:
    """Takes the replies that are there, evaluates what they bring, writes what is asked next."""
    asks.take_replies(task.run, task.asks)
    with open_run(task.run) as directory:
        run, store = directory.store.run(), directory.store
        if store.asks("queued"):
            with session_on(server, run.problem, run.config) as running:
                search = Search(store, {}, running.evaluator, directory.best_path)
                follow(search.finish_queued())
        if _is_done(directory):
            return Attempted(task, _is_right(directory))
        new = 0 if store.asks("open") else 1
        return Attempted(task, waits=tuple(asks.write_prompts(directory, new, task.asks)))


def _is_right(directory: RunDirectory) -> bool:
    return any(isinstance(node.evaluation, Passed) for node in directory.store.nodes())


def _is_done(directory: RunDirectory) -> bool:
    store = directory.store
    return _is_right(directory) or store.node_count() >= store.run().steps
