"""One problem's search as a campaign sees it: a run, and processes for its turns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from adaexplore.core.client import Client
from adaexplore.core.config import Config
from adaexplore.core.errors import AdaExploreError, BadInputError, BadProblemError
from adaexplore.core.facts import ReferenceFacts
from adaexplore.core.listener import Listener, follow
from adaexplore.core.node import Node, planned_steps
from adaexplore.core.problem import Problem
from adaexplore.core.proposer import Proposer
from adaexplore.run import ask_files as asks
from adaexplore.run.campaign import Progress
from adaexplore.run.campaign_file import CampaignEntry
from adaexplore.run.proposers import (
    COMPILER,
    Plan,
    check_compiler,
    chooser,
    make_plan,
    model_proposers,
    try_templates,
    with_memory,
)
from adaexplore.run.records import command, record_of, settled
from adaexplore.run.search import Search
from adaexplore.run.session import Session, device_of, load_problem, session_on, start_server
from adaexplore.sandbox.process import ForkServer
from adaexplore.search.allocation import Arm
from adaexplore.search.ensemble import gains
from adaexplore.search.headroom import best_measured, headroom, stop_reason
from adaexplore.store import RunDirectory, make_run, open_run, read_run
from adaexplore.store.directory import DATABASE_NAME

MOST_STEPS = 1000
"""Of a run that only the campaign's budget limits."""


class ProgressRow(Listener):
    """Callbacks of a job: those of its search, and those between the searches."""

    def known(self, nodes: Sequence[Node], facts: ReferenceFacts) -> None:
        """The steps that are recorded already."""

    def preparing(self) -> None:
        """Its processes are started, and its reference is run."""

    def lost(self, why: str) -> None:
        """It gets no further turn."""


class Servers:
    """Fork servers that all problems of a campaign share: starting one takes seconds."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._servers: dict[tuple[str, bool], ForkServer] = {}

    def get(self, problem: Problem) -> ForkServer:
        """The one for problems of this kind."""
        with self._starting:
            key = (problem.language, problem.target is not None)
            if key not in self._servers:
                self._servers[key] = start_server(problem)
            return self._servers[key]

    def close(self) -> None:
        """Ends them all, and every process they started; one that is starting ends with this."""
        for server in list(self._servers.values()):
            server.close()


@dataclass(slots=True)
class Common:
    """What the searches of a campaign share.

    `clients` answer for all models. `spent` gives the reason to begin no further step, if any:
    `out_of_money` is what a client said of the budget. With `by_time` the budget is time, else
    steps.
    """

    servers: Servers
    clients: Mapping[str, Client] = field(default_factory=dict)
    over: Callable[[], str | None] = lambda: None
    by_time: bool = False
    out_of_money: str = ""

    def spent(self) -> str | None:
        """Why there shall be no next step."""
        return self.out_of_money or self.over()


@dataclass(frozen=True, slots=True)
class _Begun:
    """What a search has between turns."""

    problem: Problem
    plan: Plan
    config: Config
    session: Session
    proposers: Mapping[str, Proposer]


class SearchCourse:
    """A `campaign.Course` over a run directory, made at the first turn."""

    def __init__(
        self, entry: CampaignEntry, folder: Path, common: Common, line: ProgressRow
    ) -> None:
        self.entry = entry
        self.path = folder / entry.name
        self._common = common
        self._line = line
        self._begun: _Begun | None = None
        self._resources = ExitStack()
        self._config = entry.config
        self.device = ""
        if self.exists:
            with read_run(self.path) as run:
                record = run.store.run()
            self.device, self._config = record.problem.device, record.config

    @property
    def devices(self) -> list[str]:
        """Where it may be judged; `BadInputError` for a device that this machine has not."""
        if self.device:
            return [device_of(self.device)]
        if self.entry.devices:
            return [device_of(device) for device in self.entry.devices]
        return [device_of("cpu" if self.entry.config.target else None)]

    @property
    def exists(self) -> bool:
        """Whether there is a run already."""
        return (self.path / DATABASE_NAME).is_file()

    def nodes(self) -> tuple[list[Node], ReferenceFacts]:
        """The recorded steps, and what is known of the reference."""
        if not self.exists:
            return [], ReferenceFacts()
        with read_run(self.path) as run:
            return run.store.nodes(), run.store.run().reference

    def show(self) -> None:
        """Puts what is recorded already into its line."""
        self._line.known(*self.nodes())

    def progress(self) -> Progress:
        """See `campaign.Course`."""
        nodes, facts = self.nodes()
        steps = planned_steps(nodes)
        standing = Arm(
            gains=gains(steps),
            costs=[_seconds(node) if self._common.by_time else 1.0 for node in steps],
            headroom=headroom(nodes, facts),
        )
        left = max(self._most - len(steps), 0)
        ended = stop_reason(nodes, facts, self._config) or ("" if left else "all steps made")
        return Progress(standing, left, ended, unconfirmed=self._is_unconfirmed(nodes))

    def waits(self) -> str:
        """What it waits for, if it goes on with that only."""
        return ""

    def turn(self, steps: int, parallel: int) -> None:
        """See `campaign.Course`."""
        with self._ready() as (begun, directory):
            store = directory.store
            config = store.run().config
            store.set_config(config.with_steps(self._most))
            until = len(planned_steps(store.nodes())) + steps
            stopped = follow(
                self._search(directory, begun, parallel, self._common.spent).run(until), self._line
            )
            nodes = store.nodes()
            if stopped and not stop_reason(nodes, store.run().reference, config):
                self._common.out_of_money = self._common.out_of_money or stopped
            store.set_config(
                config.with_steps(self.entry.config.steps or len(planned_steps(nodes)))
            )

    def finish(self) -> None:
        """See `campaign.Course`."""
        with self._ready() as (begun, directory):
            search = self._search(directory, begun, 1, self._common.over)
            follow(search.tune(self._config.tune), self._line)

    def park(self) -> None:
        """See `campaign.Course`."""
        self._begun = None
        resources, self._resources = self._resources, ExitStack()
        resources.close()

    @contextmanager
    def _ready(self) -> Iterator[tuple[_Begun, RunDirectory]]:
        """What a turn needs; says in its line if something ends it."""
        self._line.preparing()
        try:
            begun = self._begin()
            with self._open(begun) as directory:
                yield begun, directory
        except AdaExploreError as error:
            self._line.lost(str(error))
            raise

    def _search(
        self,
        directory: RunDirectory,
        begun: _Begun,
        parallel: int,
        spent: Callable[[], str | None],
    ) -> Search:
        run, store = directory.store.run(), directory.store
        return Search(
            store,
            begun.proposers,
            begun.session.evaluator,
            directory.best_path,
            clients={name: self._common.clients[name] for name in begun.plan.models},
            choose=chooser(begun.plan, run.config, store),
            spent=spent,
            parallel=parallel,
        )

    def _begin(self) -> _Begun:
        """The processes and proposers; starts them where there are none.

        Raises `BadProblemError` for a problem that cannot be loaded or has no place here.
        """
        if self._begun is None:
            try:
                problem, plan, config = self._problem_and_plan()
                server = self._common.servers.get(problem)
                running = self._resources.enter_context(session_on(server, problem, config))
            except BadInputError as error:
                raise BadProblemError(str(error)) from error
            proposers = model_proposers(plan, config)
            proposers[COMPILER] = running.compiler(config)
            proposers |= running.tuning(problem)
            self._begun = _Begun(problem, plan, config, running, proposers)
        return self._begun

    def _problem_and_plan(self) -> tuple[Problem, Plan, Config]:
        if self.exists:
            with read_run(self.path) as run:
                record = run.store.run()
            return record.problem, Plan.of(record), record.config
        config = self._config.model_copy(update={"device": self.device or None})
        problem = load_problem(Path(self.entry.path), config)
        plan = make_plan(config)
        if COMPILER in plan.proposers or config.compiler_seeds:
            check_compiler(problem)
        return problem, *with_memory(plan, settled(config, problem), problem)

    @property
    def _most(self) -> int:
        """The number of steps that the search may make in all."""
        return self.entry.config.steps or MOST_STEPS

    def _open(self, begun: _Begun) -> RunDirectory:
        """Open the run for writing; make it first, once its reference is judged."""
        if not self.exists:
            config = begun.config.with_steps(self._most)
            words = command(Path(self.entry.path), config)
            record = record_of(begun.session, begun.problem, config, begun.plan, words)
            try_templates(begun.plan, record)
            make_run(self.path, record)
        return open_run(self.path)

    def _is_unconfirmed(self, nodes: list[Node]) -> bool:
        best = best_measured(nodes)
        if best is None or not self._config.confirm:
            return False
        with read_run(self.path) as run:
            confirmed = {kept.node_id for kept in run.store.confirmations()}
        return best[0].id not in confirmed


class AnsweredCourse(SearchCourse):
    """A course for whose steps somebody answers prompts, as files in `asks`.

    A turn takes what was answered, evaluates it, and asks for its steps: those wait then, at most
    so many as `in_flight`, because who answers them together learns nothing from one for another.
    """

    def __init__(
        self, entry: CampaignEntry, folder: Path, common: Common, line: ProgressRow, in_flight: int
    ) -> None:
        super().__init__(entry, folder, common, line)
        self.asks = folder / "asks" / entry.name
        self._in_flight = in_flight

    def progress(self) -> Progress:
        """See `campaign.Course`."""
        progress, waiting = super().progress(), self._waiting()
        left = 0 if waiting and not self._has_more(waiting) else progress.left
        return replace(progress, left=left, asked=len(waiting))

    def waits(self) -> str:
        """See `SearchCourse`."""
        waiting = len(self._waiting())
        return f"{waiting} prompts wait in {self.asks}" if waiting else ""

    def turn(self, steps: int, parallel: int) -> None:
        """See `campaign.Course`."""
        if self.exists:
            asks.take_replies(self.path, self.asks)
        with self._ready() as (begun, directory):
            store = directory.store
            store.set_config(store.run().config.with_steps(self._most))
            made, seeds = len(planned_steps(store.nodes())), self._config.compiler_seeds
            search = self._search(directory, begun, parallel, self._common.spent)
            if made < seeds and store.ask_count() <= seeds:
                follow(search.run(seeds), self._line)
                if len(planned_steps(store.nodes())) < min(seeds, store.run().steps):
                    return  # stopped on the way: what is left of the seeds comes first
            follow(search.finish_queued(), self._line)
            now, waiting = len(planned_steps(store.nodes())), len(store.asks("open"))
            left = store.run().steps - now - waiting
            new = min(steps - (now - made), left, self._in_flight - waiting)
            asks.write_prompts(directory, max(new, 0), self.asks)

    def _waiting(self) -> list[int]:
        """The asks that wait for an answer, by their ids."""
        if not self.exists:
            return []
        with read_run(self.path) as run:
            return asks.unanswered(run.store, self.asks)

    def _has_more(self, waiting: Sequence[int]) -> bool:
        """Whether there is something that a turn would go on with."""
        with read_run(self.path) as run:
            under_way = run.store.asks("open", "queued")
        return len(under_way) > len(waiting) or asks.has_misnamed(self.asks)


def _seconds(node: Node) -> float:
    return node.propose_s + node.evaluation.cost.wall_s
