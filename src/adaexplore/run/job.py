"""A run that continues in slices, on processes that other jobs share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.core.node import Node, planned_steps
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.client import ModelClient
from adaexplore.core.protocols.listener import Event, Listener, Notice, follow
from adaexplore.core.protocols.proposer import Proposer
from adaexplore.core.rule import Rule
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.languages import DIALECTS
from adaexplore.run.asks import ask_files
from adaexplore.run.cluster.connection import open_fleet
from adaexplore.run.cluster.fleet import Fleet
from adaexplore.run.processes import start_server
from adaexplore.run.proposers import (
    COMPILER,
    Plan,
    chooser,
    model_proposers,
    try_templates,
    with_memory,
)
from adaexplore.run.records import record_of, settled
from adaexplore.run.search import Search
from adaexplore.run.session import Session, session_in, session_on, take_present_gpu
from adaexplore.run.starts import starts_left, starts_of
from adaexplore.sandbox.process import ForkServer
from adaexplore.store import RunDirectory, Store, make_run, open_run, read_run
from adaexplore.store.directory import is_run

MOST_STEPS = 1000
"""Planned steps of a run that only a budget limits."""


class Servers:
    """Fork servers that jobs share, one for each kind of problem: a start takes seconds.

    In a cluster they share its devices, `parallel` of them.
    """

    def __init__(self, parallel: int = 1) -> None:
        self._parallel = parallel
        self._starting = threading.Lock()
        self._servers: dict[tuple[str, bool], ForkServer] = {}
        self._fleets: dict[str, Fleet] = {}

    def get(self, problem: Problem) -> ForkServer:
        """Return the server for problems of this kind; start it first if it does not run."""
        with self._starting:
            key = (problem.language, problem.target is not None)
            if key not in self._servers:
                self._servers[key] = start_server(problem)
            return self._servers[key]

    @contextmanager
    def session(self, problem: Problem, config: Config) -> Iterator[Session]:
        """Open a session for a job."""
        with self.opened(problem, config, 1) as session:
            yield session

    def opened(
        self, problem: Problem, config: Config, parallel: int, problems: int = 1
    ) -> AbstractContextManager[Session]:
        """Return a session to enter, for so many steps at once: here, or in the cluster.

        Here, so many `problems` share its device.
        """
        if config.ray:
            return session_in(self._fleet(problem, config), problem, config, self._parallel)
        return session_on(self.get(problem), problem, config, parallel, problems)

    def _fleet(self, problem: Problem, config: Config) -> Fleet:
        """Return the devices that all jobs on this kind of device share."""
        with self._starting:
            if problem.device not in self._fleets:
                self._fleets[problem.device] = open_fleet(problem, config)
            return self._fleets[problem.device]

    def close(self) -> None:
        """End all servers, also one that is starting, and every process that they started."""
        for fleet in self._fleets.values():
            fleet.close()
        for server in list(self._servers.values()):
            server.close()


class NewRun(NamedTuple):
    """The content of a run that a job makes at its first slice.

    `command` returns the command line that makes the same run, from the settled configuration.
    """

    problem: Problem
    config: Config
    plan: Plan
    command: Callable[[Config], str]


@dataclass(slots=True)
class Slice:
    """The limits of a slice: `spent` returns the reason to begin no further step, if any.

    `until` is the number of planned steps at which the slice ends, None for all.
    """

    until: int | None = None
    parallel: int = 1
    clients: Mapping[str, ModelClient] = field(default_factory=dict)
    spent: Callable[[], str | None] = lambda: None


class Ready(NamedTuple):
    """The processes of a run and the proposers that need them, kept between slices."""

    session: Session
    proposers: Mapping[str, Proposer]


class Job:
    """A run in a folder that continues in slices; one thread uses it at a time.

    The run is made at the first slice, from what `new` returns. Processes are kept between slices
    until `suspend`. Where a person proposes, prompts and replies are files in the folder `asks`.
    `steps` is the number of planned steps in all, None where only a budget limits them. With
    `rules`, each slice begins with the rules that it returns then, in place of the run's own; a
    step that a slice left open keeps those that it began with.
    """

    def __init__(
        self,
        path: Path,
        new: Callable[[], NewRun],
        servers: Servers,
        listener: Callable[[Event], None] | None = None,
        asks: Path | None = None,
        steps: int | None = None,
        rules: Callable[[], tuple[Rule, ...]] | None = None,
    ) -> None:
        self.path = path
        self._steps = steps
        self._rules = rules
        self.asks = asks or path.with_name(f"{path.name}-asks")
        self._new = new
        self._servers = servers
        self._listener = listener or Listener()
        self._ready: Ready | None = None
        self._resources = ExitStack()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.suspend()

    @property
    def exists(self) -> bool:
        """True once the run is made."""
        return is_run(self.path)

    @property
    def most_steps(self) -> int:
        """The number of steps that the run may have in all."""
        return self._steps or MOST_STEPS

    def nodes(self) -> tuple[list[Node], ReferenceFacts]:
        """Return the recorded steps and the facts about the reference, as far as they are known."""
        if not self.exists:
            return [], ReferenceFacts()
        with read_run(self.path) as run:
            return run.store.nodes(), run.store.run().reference

    def search(self, limits: Slice) -> str:
        """Search for a slice; return the reason to stop, empty where there was none.

        Raises as `Search.run` does.
        """
        with self._open() as directory:
            store = directory.store
            store.set_config(store.run().config.with_steps(self.most_steps))
            self._renew_rules(store)
            search = self._search(directory, limits)
            reason = follow(search.run(limits.until), self._listener)
            if self._steps is None:
                made = len(planned_steps(store.nodes()))
                store.set_config(store.run().config.with_steps(made))
            return reason

    def finish(self, limits: Slice) -> None:
        """Judge the answers that came, then tune and confirm the winner."""
        if self.asks.is_dir():
            self._take_replies()
        with self._open() as directory:
            follow(self._search(directory, limits).finish(), self._listener)

    def answer(self, limits: Slice, new: Callable[[RunDirectory], int]) -> list[Path]:
        """Evaluate the replies that came, then ask for `new` steps; return the files that wait.

        First steps of the compiler come before any prompt. No process starts where there is nothing
        to evaluate.
        """
        if self.exists:
            self._take_replies()
        with self._open() as directory:
            store = directory.store
            store.set_config(store.run().config.with_steps(self.most_steps))
            self._renew_rules(store)
            if starts_left(store):
                follow(self._search(directory, limits).start(), self._listener)
                if starts_left(store):
                    return []
            seeds = min(store.run().config.compiler_seeds, store.run().steps)
            asked = store.ask_count() - len(starts_of(store.run()))
            if len(planned_steps(store.nodes())) < seeds and asked <= seeds:
                follow(self._search(directory, limits).run(seeds), self._listener)
                if len(planned_steps(store.nodes())) < seeds:
                    return []  # stopped on the way: the rest of the seeds comes first
            if store.asks("queued"):
                follow(self._search(directory, limits).finish_queued(), self._listener)
            return list(ask_files.write_prompts(directory, max(new(directory), 0), self.asks))

    def _take_replies(self) -> None:
        """Take the replies that are there, and say which of them hold no candidate."""
        for line in ask_files.take_replies(self.path, self.asks):
            self._listener(Notice(line))

    def waiting(self) -> list[int]:
        """Return the ids of the asks that wait for an answer."""
        if not self.exists:
            return []
        with read_run(self.path) as run:
            return ask_files.unanswered(run.store, self.asks)

    def answered(self) -> int:
        """Return the number of asks that have an answer and are not judged."""
        if not self.exists:
            return 0
        with read_run(self.path) as run:
            store = run.store
            waiting = set(ask_files.unanswered(store, self.asks))
            return sum(
                record.state == "queued"
                or (record.ask.id not in waiting and record.ask.proposer == MANUAL)
                or bool(store.calls(record.ask.id))
                for record in store.asks("open", "queued")
            )

    def has_replies(self, waiting: Sequence[int]) -> bool:
        """Return True where a slice would continue with more than the asks that wait."""
        with read_run(self.path) as run:
            in_flight = run.store.asks("open", "queued")
        return len(in_flight) > len(waiting) or ask_files.has_misnamed(self.asks)

    def suspend(self) -> None:
        """End the processes that are kept between slices; the next slice prepares again."""
        self._ready = None
        resources, self._resources = self._resources, ExitStack()
        resources.close()

    @contextmanager
    def _open(self) -> Iterator[RunDirectory]:
        """Open the run for writing; make it first where there is none."""
        if not self.exists:
            self._make()
        with open_run(self.path) as directory:
            if moved := take_present_gpu(directory.store):
                self._listener(Notice(moved))
            yield directory

    def _make(self) -> None:
        """Make the run, once its reference is judged.

        Raises `BadProblemError` for a problem that cannot be loaded or judged on this machine.
        """
        with _as_bad_problem():
            new = self._new()
            plan, config = with_memory(new.plan, settled(new.config, new.problem), new.problem)
        config = config.with_steps(self.most_steps)
        ready = self._prepare(new.problem, config)
        record = record_of(ready.session, new.problem, config, plan, new.command(config))
        try_templates(plan, record)
        make_run(self.path, record)

    def _prepare(self, problem: Problem, config: Config) -> Ready:
        if self._ready is None:
            with _as_bad_problem():
                session = self._servers.session(problem, config)
                running = self._resources.enter_context(session)
            proposers = {COMPILER: running.compiler(config), **running.tuning(problem)}
            self._ready = Ready(running, proposers)
        return self._ready

    def _renew_rules(self, store: Store) -> None:
        """Give the run the rules for its next steps, unless a step is under way."""
        run = store.run()
        plan = Plan.of(run)
        about_it = plan.asks_prompts and DIALECTS[run.problem.language].by_triton
        if self._rules is None or not about_it or store.asks("open"):
            return
        rules = self._rules()
        if rules != plan.rules:
            store.set_plan(replace(plan, rules=rules).to_json())

    def _search(self, directory: RunDirectory, limits: Slice) -> Search:
        store = directory.store
        run = store.run()
        plan = Plan.of(run)
        ready = self._prepare(run.problem, run.config)
        return Search(
            store,
            {**model_proposers(plan, run.config), **ready.proposers},
            ready.session.evaluator,
            directory.best_path,
            clients={name: limits.clients[name] for name in plan.models},
            choose=chooser(plan, run.config, store),
            spent=limits.spent,
            parallel=limits.parallel,
        )


@contextmanager
def _as_bad_problem() -> Iterator[None]:
    """Raise `BadProblemError` for bad input that concerns one problem alone."""
    try:
        yield
    except BadInputError as error:
        raise BadProblemError(str(error)) from error
