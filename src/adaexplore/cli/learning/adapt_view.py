"""Learning rules from failures: adapt, and explore --memory-update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from adaexplore.cli.learning.growth_view import GrowthView
from adaexplore.cli.terminal.printing import say
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import TargetName
from adaexplore.core.protocols.client import BudgetSpentError, ModelClient
from adaexplore.core.settings.config import Config
from adaexplore.core.text.units import prompts_wait
from adaexplore.memory.extract import Failure, failures_of
from adaexplore.memory.unchecked.sentences import errors_of
from adaexplore.memory.update import check_updatable
from adaexplore.run.learning.adaptation import adaptation_tasks, failures_in, task_config
from adaexplore.run.learning.attempts import Attempted, TaskRun, attempt_all
from adaexplore.run.learning.growth import grow
from adaexplore.run.learning.learn import Learned, learn
from adaexplore.run.learning.learn_published import learn_published
from adaexplore.run.learning.lessons import Lessons
from adaexplore.run.learning.machine import Machine, default_parallel
from adaexplore.run.proposers import Plan, make_plan, open_clients
from adaexplore.run.recall import memory_for
from adaexplore.run.session import INTERRUPTED
from adaexplore.store import RunDirectory


@dataclass(frozen=True, slots=True)
class AdaptOptions:
    """Options of `adaexplore adapt`."""

    output: Path
    runs: Sequence[Path] = ()
    problems: Path | None = None
    given: Config = field(default_factory=Config)
    tasks: int = 200
    work: Path | None = None
    least_tasks: int = 1
    device: str | None = None
    target: TargetName | None = None
    parallel: int | None = None
    techniques: bool | None = None

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
    check_updatable(options.output)
    config = task_config(options.given)
    if config.learning == "published" and options.least_tasks > 1:
        raise BadInputError(
            "--least-tasks goes with --set learning=checked: published rules are counted, and "
            "--set memory_threshold=N chooses among them"
        )
    machine = Machine(options.device, options.target, options.given.language or "triton")
    adaptation = _Adaptation(Console(), options, config, machine)
    failures = adaptation.failures_in(options.runs)
    with open_clients(config, make_plan(config)) as clients:
        if options.problems is None:
            return adaptation.learn(failures, _first(clients))
        return adaptation.grow(clients) if config.grow else adaptation.attempt(clients)


def learn_from_search(console: Console, directory: RunDirectory) -> int:
    """Learn rules from the failures of a search, by its first model; return the exit code."""
    run = directory.store.run()
    plan = Plan.of(run)
    find = errors_of if run.config.learning == "published" else failures_of
    failures = find(run.problem, directory.store.nodes())
    options = AdaptOptions(Path(run.config.memory_update), work=directory.path)
    machine = Machine(run.problem.device, run.problem.target)
    with open_clients(run.config, plan, directory.store) as clients:
        adaptation = _Adaptation(console, options, run.config, machine)
        return adaptation.learn(failures, clients[plan.models[0]])


@dataclass(frozen=True, slots=True)
class _Adaptation:
    """One call of a command that learns rules; `grow`, `attempt` and `learn` return a status."""

    console: Console
    options: AdaptOptions
    config: Config
    machine: Machine

    def grow(self, clients: Mapping[str, ModelClient]) -> int:
        """Search tasks one after the other, learning from each."""
        options, config, tasks = self.options, self.config, self._tasks()
        client = _first(clients)
        lessons = Lessons(
            options.output,
            options.folder / "rules",
            self.machine.checker,
            way=config.learning,
            ask=client.ask if client else None,
            base=memory_for(tasks[0].problem, config.memory)[1],
            least_tasks=options.least_tasks,
            tell=self._say,
        )
        view = GrowthView(self.console, len(tasks), lessons, config)
        with closing(lessons):
            try:
                folder = options.folder / "tasks"
                for grown in grow(tasks, lessons, clients, folder, options.parallel or 1):
                    view.show(grown)
            except BudgetSpentError as error:
                self._say(f"stopping: {error}; the same command goes on")
            except KeyboardInterrupt:
                return self._stopped()
        view.show_end()
        return 0

    def attempt(self, clients: Mapping[str, ModelClient]) -> int:
        """Attempt tasks, each in a run of its own below the work folder; learn from failures."""
        tasks = self._tasks()
        parallel = self.options.parallel or default_parallel()
        try:
            waiting = _attempt(self.console, tasks, clients, parallel)
        except KeyboardInterrupt:
            return self._stopped()
        runs = sorted(task.run for task in tasks if task.run.exists())
        failures = self.failures_in(runs)
        status = self.learn(failures, _first(clients)) if failures else 0
        if waiting:
            self._say(
                f"{prompts_wait(waiting)} in {self.options.folder / 'asks'}: answer TASK/1.1.md in "
                "TASK/1.1.reply.md and so on, and run the same command again"
            )
        return status

    def failures_in(self, runs: Sequence[Path]) -> list[Failure]:
        """Return the failures of the candidates of runs."""
        return [found for run in runs for found in failures_in(run, self.config.learning)]

    def learn(self, failures: Sequence[Failure], client: ModelClient | None) -> int:
        """Make rules of failures; without a client, prompts wait in files."""
        published = self.config.learning == "published"
        how = "counting them, unchecked" if published else f"trying them on {self.machine}"
        self._say(f"{len(failures)} failures of candidates; {how}")
        by_way = learn_published if published else self._learn_checked
        try:
            learned = by_way(
                failures,
                self.options.output,
                self.options.folder / "rules",
                ask=client.ask if client else None,
                tell=self._say,
            )
        except BudgetSpentError as error:
            self._say(f"stopping: {error}; the same command goes on")
            return 0
        except KeyboardInterrupt:
            return self._stopped()
        self._say_result(learned)
        return 0

    def _tasks(self) -> list[TaskRun]:
        options, config = self.options, self.config
        assert options.problems
        techniques = not config.grow if options.techniques is None else options.techniques
        return adaptation_tasks(
            options.problems,
            options.folder,
            config,
            self.machine,
            limit=options.tasks,
            techniques=techniques,
            skipped=self._say,
        )

    def _learn_checked(
        self, failures: Sequence[Failure], memory: Path, folder: Path, **how: Any
    ) -> Learned:
        with closing(self.machine.checker()) as checker:
            least = self.options.least_tasks
            return learn(failures, memory, folder, checker, least_tasks=least, **how)

    def _say_result(self, learned: Learned) -> None:
        counts = (
            f"{len(learned.rules)} new rules, {len(learned.counted)} known ones counted, "
            f"{len(learned.dropped) + len(learned.refused)} cases without a rule"
        )
        self._say(f"{self.options.output}: {counts}")
        for path in learned.open:
            reply = f"{path.stem}.reply.md"
            self._say(f"{path}: answer in {reply}, and run the same command again")

    def _say(self, line: str) -> None:
        say(self.console, line)

    def _stopped(self) -> int:
        self._say("stopped; the same command goes on")
        return INTERRUPTED


def _first(clients: Mapping[str, ModelClient]) -> ModelClient | None:
    """Return the client of the first model, which writes the rules; None without any."""
    return next(iter(clients.values()), None)


def _attempt(
    console: Console, tasks: Sequence[TaskRun], clients: Mapping[str, ModelClient], parallel: int
) -> int:
    """Attempt tasks and print the results; return the number of prompts that wait for a person."""
    waiting = right = unknown = done = 0
    try:
        for attempted in attempt_all(tasks, clients, parallel):
            name = attempted.task.problem.name
            if attempted.lost:
                say(console, f"{name}: left out: {attempted.lost}")
            elif attempted.waits:
                waiting += len(attempted.waits)
            else:
                done, right = done + 1, right + attempted.right
                unknown += attempted.unknown
                say(console, f"{name}: {_outcome(attempted)}")
    except BudgetSpentError as error:
        say(console, f"stopping: {error}")
    if done:
        others = f"; {unknown} compile and were not run" if unknown else ""
        say(console, f"{right} of {done} tasks came out right{others}")
    return waiting


def _outcome(attempted: Attempted) -> str:
    if attempted.right:
        return "right"
    return "compiles, not run" if attempted.unknown else "failed"
