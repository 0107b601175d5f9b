"""One problem of a campaign: a job, its progress, and the devices that it may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import AdaExploreError
from adaexplore.core.node import Node, planned_steps
from adaexplore.core.protocols.client import BudgetSpentError, ModelClient
from adaexplore.core.protocols.listener import Listener
from adaexplore.core.rule import Rule
from adaexplore.core.text.units import prompts_wait
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.run.asks.ask_files import check_replies
from adaexplore.run.campaign.file import CampaignEntry
from adaexplore.run.campaign.turns import Progress
from adaexplore.run.job import Job, NewRun, Servers, Slice
from adaexplore.run.learning.lessons import Lessons
from adaexplore.run.outcome.winner import to_confirm
from adaexplore.run.proposers import COMPILER, check_compiler, make_plan, with_starts
from adaexplore.run.records import command
from adaexplore.run.session import device_of, load_problem, present
from adaexplore.search.allocation import Arm
from adaexplore.search.ensemble import gains
from adaexplore.search.headroom import headroom, stop_reason
from adaexplore.store import RunDirectory, Store, read_run
from adaexplore.store.campaign import hold_problem, is_held


class ProgressRow(Listener):
    """Callbacks of a job: those of its search, and those between the slices."""

    def known(self, nodes: Sequence[Node], facts: ReferenceFacts) -> None:
        """Take the steps that are recorded already."""

    def preparing(self) -> None:
        """The processes start and the reference runs."""

    def lost(self, why: str) -> None:
        """The job gets no further slice."""


@dataclass(slots=True)
class SharedLimits:
    """Limits and models that the jobs of a campaign share.

    `clients` answer for all models. `lessons` make rules of failures, where a memory grows. `spent`
    returns the reason to begin no further step, if any; `out_of_money` is the reason that a client
    gave. With `by_time` the budget is time, else steps.
    """

    servers: Servers
    clients: Mapping[str, ModelClient] = field(default_factory=dict)
    lessons: Lessons | None = None
    over: Callable[[], str | None] = lambda: None
    by_time: bool = False
    out_of_money: str = ""

    def spent(self) -> str | None:
        """Return the reason to begin no further step."""
        return self.out_of_money or self.over()


class CampaignJob:
    """A `campaign.ProblemJob` over the run of an entry.

    Where a person proposes, a slice evaluates the replies that came and asks for its steps. At most
    `in_flight` steps wait for replies: a person who answers several prompts together learns nothing
    from one for another.
    """

    def __init__(
        self,
        entry: CampaignEntry,
        folder: Path,
        shared: SharedLimits,
        row: ProgressRow,
        in_flight: int,
    ) -> None:
        self.entry = entry
        self.path = folder / entry.name
        self._file = folder / entry.path
        self._shared = shared
        self._row = row
        self._in_flight = in_flight
        self._is_manual = entry.config.proposer == MANUAL
        self._config = entry.config
        self._job = Job(
            self.path,
            self._new,
            shared.servers,
            row,
            asks=folder / "asks" / entry.name,
            steps=entry.config.steps,
            rules=self._rules if entry.config.memory_update else None,
        )
        self.device = ""
        if self.exists:
            with read_run(self.path) as run:
                record = run.store.run()
            self.device, self._config = record.problem.device, record.config

    @property
    def problem(self) -> str:
        """See `campaign.ProblemJob`."""
        return f"{self.entry.path} {self.entry.config.precision} {self.entry.config.mode}"

    @property
    def devices(self) -> list[str]:
        """The devices that may judge it; `BadInputError` for a device that is not there."""
        ray = self.entry.config.ray
        named = (self.device,) if self.device else self.entry.devices
        if not named:
            return [device_of("cpu" if self.entry.config.target else None, ray)]
        return [device_of(each, ray) for each in dict.fromkeys(present(d, ray) for d in named)]

    @property
    def exists(self) -> bool:
        """True once the run is made."""
        return self._job.exists

    def nodes(self) -> tuple[list[Node], ReferenceFacts]:
        """Return the recorded steps and the facts about the reference."""
        return self._job.nodes()

    def show(self) -> None:
        """Put the recorded steps into the progress row."""
        self._row.known(*self.nodes())

    def progress(self) -> Progress:
        """See `campaign.ProblemJob`."""
        nodes, facts = self.nodes()
        steps = planned_steps(nodes)
        arm = Arm(
            gains=[gain for node, gain in zip(nodes, gains(nodes), strict=True) if node.is_planned],
            costs=[_seconds(node) if self._shared.by_time else 1.0 for node in steps],
            headroom=headroom(nodes, facts),
        )
        left = max(self._job.most_steps - len(steps), 0)
        ended = stop_reason(nodes, facts, self._config) or ("" if left else "all steps made")
        progress = Progress(
            arm,
            left,
            ended,
            unconfirmed=self._is_unconfirmed(nodes),
            answered=self._job.answered(),
            elsewhere=bool(self.entry.config.store) and is_held(self.path.parent, self.entry.name),
        )
        if not self._is_manual:
            return progress
        waiting = self._job.waiting()
        left = 0 if waiting and not self._job.has_replies(waiting) else left
        return replace(progress, left=left, asked=len(waiting))

    def check_replies(self, store: Store) -> None:
        """Raise `BadInputError` for a file beside the prompts of its run that is no reply."""
        if self._is_manual:
            check_replies(store, self._job.asks)

    def waits(self) -> str:
        """Return a line about the prompts that wait for answers, empty where none does."""
        waiting = len(self._job.waiting()) if self._is_manual else 0
        return f"{prompts_wait(waiting)} in {self._job.asks}" if waiting else ""

    def slice(self, steps: int, parallel: int) -> None:
        """See `campaign.ProblemJob`."""
        with self._held(), self._told():
            made = len(planned_steps(self.nodes()[0]))
            limits = self._limits(parallel, until=made + steps)
            if self._is_manual:
                self._job.answer(limits, lambda run: self._new_asks(run, made, steps))
                return
            stopped = self._job.search(limits)
            self.learn()
        nodes, facts = self.nodes()
        if stopped and not stop_reason(nodes, facts, self._config):
            self._shared.out_of_money = self._shared.out_of_money or stopped

    def finish(self) -> None:
        """See `campaign.ProblemJob`."""
        with self._held(), self._told():
            self._job.finish(replace(self._limits(parallel=1), spent=self._shared.over))

    def learn(self) -> None:
        """Make rules of the failures so far, where the campaign's memory grows."""
        lessons = self._shared.lessons
        if lessons is None or not self.exists:
            return
        with read_run(self.path) as run:
            problem, nodes = run.store.run().problem, run.store.nodes()
        try:
            lessons.learn(self.entry.name, problem, nodes)
        except BudgetSpentError as error:
            self._shared.out_of_money = self._shared.out_of_money or str(error)

    def suspend(self) -> None:
        """See `campaign.ProblemJob`."""
        self._job.suspend()

    def _held(self) -> AbstractContextManager[None]:
        """Keep other processes from the problem, where the campaign may have several."""
        if not self.entry.config.store:
            return nullcontext()
        return hold_problem(self.path.parent, self.entry.name)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell the progress row what begins, and what ends it."""
        self._row.preparing()
        try:
            yield
        except AdaExploreError as error:
            self._row.lost(str(error))
            raise

    def _limits(self, parallel: int, until: int | None = None) -> Slice:
        return Slice(until, parallel, self._shared.clients, self._shared.spent)

    def _new(self) -> NewRun:
        own = {"device": self.device or None, "memory_update": ""}  # the campaign learns from it
        config = self._config.model_copy(update=own)
        problem = load_problem(self._file, config)
        plan = with_starts(make_plan(config), config, self._file)
        if COMPILER in plan.proposers or config.compiler_seeds:
            check_compiler(problem)
        return NewRun(problem, config, plan, partial(command, self._file))

    def _rules(self) -> tuple[Rule, ...]:
        assert self._shared.lessons
        return self._shared.lessons.rules()

    def _new_asks(self, run: RunDirectory, before: int, steps: int) -> int:
        """Return the number of steps to ask for, `before` steps having been made before."""
        made, waiting = len(planned_steps(run.store.nodes())), len(run.store.asks("open"))
        left = run.store.run().steps - made - waiting
        return min(steps - (made - before), left, self._in_flight - waiting)

    def _is_unconfirmed(self, nodes: list[Node]) -> bool:
        if not (nodes and self._config.confirm):
            return False
        with read_run(self.path) as run:
            return to_confirm(nodes, run.store, self._config.confirm_top) is not None


def _seconds(node: Node) -> float:
    return node.propose_s + node.evaluation.cost.wall_s
