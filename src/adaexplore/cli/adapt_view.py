"""Learning rules from failures: adapt, and explore --memory-update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from adaexplore.cli.checking import say
from adaexplore.core.config import Config
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import TargetName
from adaexplore.core.protocols.client import BudgetSpentError, Client
from adaexplore.memory.extract import Failure, failures_of
from adaexplore.run.learning.adaptation import adaptation_tasks, attempt_config, failures_in
from adaexplore.run.learning.attempts import Task, attempt_all
from adaexplore.run.learning.learn import Learned, learn
from adaexplore.run.learning.machine import Machine, default_parallel
from adaexplore.run.proposers import Plan, make_plan, open_clients
from adaexplore.run.session import INTERRUPTED
from adaexplore.store import RunDirectory

MAX_EVALUATIONS = 200
"""Evaluations to reduce one failing candidate; each takes a fraction of a second."""


@dataclass(frozen=True, slots=True)
class AdaptOptions:
    """Options of `adaexplore adapt`."""

    output: Path
    runs: Sequence[Path] = ()
    problems: Path | None = None
    tasks: int = 200
    model: str = ""
    memory: str = ""
    work: Path | None = None
    budget: str = ""
    least_tasks: int = 1
    device: str | None = None
    target: TargetName | None = None
    parallel: int | None = None
    techniques: bool = True

    @property
    def folder(self) -> Path:
        """The folder of runs, prompts and cases."""
        return self.work or self.output.with_name(f"{self.output.stem}.learning")


def adapt(options: AdaptOptions) -> int:
    """Learn rules from the failures of runs, or of attempts at tasks; return the exit code.

    Raises `BadInputError` for options that cannot be used together.
    """
    if bool(options.runs) == bool(options.problems):
        raise BadInputError(
            "say what to learn from: either runs (adaexplore adapt RUN...) or tasks (--problems "
            "DIR)"
        )
    config = attempt_config(options.model, budget=options.budget, memory=options.memory)
    failures = [failure for run in options.runs for failure in failures_in(run)]
    console, machine = Console(), Machine(options.device, options.target)
    with open_clients(config, make_plan(config)) as clients:
        client = clients.get(options.model)
        if options.problems is None:
            return _learn(console, failures, options, machine, client)
        return _attempt_and_learn(console, options.problems, options, config, machine, clients)


def learn_from_search(console: Console, directory: RunDirectory) -> int:
    """Learn rules from the failures of a search, by its first model; return the exit code."""
    run = directory.store.run()
    plan = Plan.of(run)
    failures = failures_of(run.problem, directory.store.nodes())
    options = AdaptOptions(Path(run.config.memory_update), work=directory.path)
    machine = Machine(run.problem.device, run.problem.target)
    with open_clients(run.config, plan, directory.store) as clients:
        return _learn(console, failures, options, machine, clients[plan.models[0]])


def _attempt_and_learn(
    console: Console,
    problems: Path,
    options: AdaptOptions,
    config: Config,
    machine: Machine,
    clients: Mapping[str, Client],
) -> int:
    """Attempt tasks, each in a run of its own below the work folder, and learn from failures."""
    tasks = adaptation_tasks(
        problems,
        options.folder,
        config,
        machine,
        limit=options.tasks,
        techniques=options.techniques,
        skipped=lambda line: say(console, line),
    )
    try:
        waiting = _attempt(console, tasks, clients, options.parallel or default_parallel())
    except KeyboardInterrupt:
        say(console, "stopped; the same command goes on")
        return INTERRUPTED
    runs = sorted(task.run for task in tasks if task.run.exists())
    failures = [failure for run in runs for failure in failures_in(run)]
    status = 0
    if failures:
        status = _learn(console, failures, options, machine, clients.get(options.model))
    if waiting:
        say(
            console,
            f"{waiting} prompts wait in {options.folder / 'asks'}: answer TASK/1.1.md in "
            "TASK/1.1.reply.md and so on, and run the same command again",
        )
    return status


def _attempt(
    console: Console, tasks: Sequence[Task], clients: Mapping[str, Client], parallel: int
) -> int:
    """Attempt tasks and print the results; return the number of prompts that wait for a person."""
    waiting = right = done = 0
    try:
        for attempted in attempt_all(tasks, clients, parallel):
            name = attempted.task.problem.name
            if attempted.lost:
                say(console, f"{name}: left out: {attempted.lost}")
            elif attempted.waits:
                waiting += len(attempted.waits)
            else:
                done, right = done + 1, right + attempted.right
                say(console, f"{name}: {'right' if attempted.right else 'failed'}")
    except BudgetSpentError as error:
        say(console, f"stopping: {error}")
    if done:
        say(console, f"{right} of {done} tasks came out right")
    return waiting


def _learn(
    console: Console,
    failures: Sequence[Failure],
    options: AdaptOptions,
    machine: Machine,
    client: Client | None,
) -> int:
    """Make rules of failures; without a client, prompts wait in files. Return the exit code."""
    say(console, f"{len(failures)} failures of candidates; trying them on {machine}")
    with closing(machine.checker()) as checker:
        try:
            learned = learn(
                failures,
                options.output,
                options.folder / "rules",
                checker,
                ask=client.ask if client else None,
                least_tasks=options.least_tasks,
                most_evaluations=MAX_EVALUATIONS,
                tell=lambda line: say(console, line),
            )
        except BudgetSpentError as error:
            say(console, f"stopping: {error}; the same command goes on")
            return 0
        except KeyboardInterrupt:
            say(console, "stopped; the same command goes on")
            return INTERRUPTED
    _say_result(console, learned, options.output)
    return 0


def _say_result(console: Console, learned: Learned, memory: Path) -> None:
    counts = (
        f"{len(learned.rules)} new rules, {len(learned.counted)} known ones counted, "
        f"{len(learned.dropped)} cases without a rule"
    )
    say(console, f"{memory}: {counts}")
    for path in learned.open:
        say(console, f"{path}: answer in {path.stem}.reply.md, and run the same command again")
