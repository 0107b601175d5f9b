"""A campaign on disk: begun, continued and summarized; the same for every front end."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from adaexplore.core.errors import AdaExploreError, BadInputError, BadProblemError
from adaexplore.core.node import busy_s
from adaexplore.core.protocols.benchmark import Exclusion
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import option_name, words
from adaexplore.report.campaign.summary import (
    CampaignSummary,
    Result,
    State,
    result_of,
    summarize_campaign,
)
from adaexplore.run.campaign.file import (
    CampaignEntry,
    CampaignPlan,
    campaign_order,
    order_of,
)
from adaexplore.run.campaign.job import CampaignJob, ProgressRow, SharedLimits
from adaexplore.run.campaign.lessons import check_lessons, lessons_of
from adaexplore.run.campaign.sessions import SharedSessions
from adaexplore.run.campaign.turns import PROBLEMS_OF_A_GPU, Campaign, Rules
from adaexplore.run.job import Servers
from adaexplore.run.learning.learn import Tell
from adaexplore.run.outcome.results import summary_of, write_report
from adaexplore.run.proposers import Plan, check, clock, make_plan, open_clients
from adaexplore.run.recall import named_rules, require_recalled
from adaexplore.run.session import device_of, require_judges
from adaexplore.run.starts import read_starts
from adaexplore.store import is_run, open_run, read_run
from adaexplore.store.campaign import (
    create_campaign,
    read_manifest,
    write_manifest,
)
from adaexplore.store.directory import hold_lock

_MAY_CHANGE = ("steps", "budget", "parallel", "allocation", "ray")


def begin_campaign(what: Sequence[Path], given: Config, op_type: str = "") -> Path:
    """Make the folder of a campaign over a TOML file, or over files of problems; return it.

    `op_type` is that of the definitions that are taken of a dataset, empty for all.

    Raises `BadInputError` for an order that cannot be carried out. No process is started.
    """
    order = campaign_order(what, given, op_type)
    chosen = ["--op-type", op_type] if op_type else []
    command = shlex.join(["adaexplore", "campaign", *map(str, what), *chosen, *words(given)])
    return begin_order(order, command, "campaign")


def begin_search(table: Mapping[str, Any], given: Config, command: str) -> Path:
    """Make the folder of a campaign over tasks of a benchmark; return it.

    `table` has the keys of `tasks.TASK_KEYS`. Raises as `begin_campaign` does.
    """
    order = order_of({}, [table], Path.cwd(), given)
    return begin_order(order, command, f"{table['benchmark']}")


def begin_order(order: CampaignPlan, command: str, kind: str) -> Path:
    """Make the folder of a campaign; return it. Raises as `begin_campaign` does."""
    _check(order)
    for name, ray in {(d, entry.config.ray) for entry in order.entries for d in entry.devices}:
        device_of(name, ray)
    _check_files(order)
    name = f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
    path = Path(order.config.run) if order.config.run else Path("runs") / name
    manifest = {"command": command, "created_at": time.time(), "order": order.to_json()}
    create_campaign(path, manifest, order.files)
    return path


def change_campaign(path: Path, given: Config) -> None:
    """Change a campaign that continues: its steps, budget, parallel steps, allocation or cluster.

    Raises `BadInputError` for any other field.
    """
    manifest = read_manifest(path)
    order = CampaignPlan.from_json(manifest["order"])
    may_change = [name for name in _MAY_CHANGE if not (order.arms and name == "allocation")]
    for name in given.model_fields_set:
        if name not in may_change:
            what = "study" if order.arms else "campaign"
            raise BadInputError(
                f"{option_name(name)}: {path} is a {what} that goes on as it began; it may "
                f"change {', '.join(map(option_name, may_change))}"
            )
    order = order.changed(given)
    _check(order)
    with hold_lock(path):
        write_manifest(path, {**manifest, "order": order.to_json()})
        if "ray" in given.model_fields_set:
            for entry in order.entries:
                _move(path / entry.name, given.ray)


def _move(run: Path, ray: str) -> None:
    """Let a search that was begun go on with another cluster, or with this machine."""
    if is_run(run):
        with open_run(run) as directory:
            store = directory.store
            store.set_config(store.run().config.model_copy(update={"ray": ray}))


def _check(order: CampaignPlan) -> None:
    """Check that the searches can be carried out; raises `BadInputError` as `check` does."""
    for entry in order.entries:
        try:
            require_judges(entry.config)
        except BadInputError as error:
            raise BadInputError(f"{entry.name}: {error}") from None
    check(order.config, _plan(order))
    check_lessons(order)


def _check_files(order: CampaignPlan) -> None:
    """Raise `BadInputError` for memories and starting kernels that new runs could not use."""
    for entry in order.entries:
        read_starts(entry.config.start_from, Path(entry.path))
    if _plan(order).asks_prompts:
        settings = {(e.config.memory, e.config.memory_threshold): e.config for e in order.entries}
        for config in settings.values():
            require_recalled(named_rules(config.memory), config)


def _plan(order: CampaignPlan) -> Plan:
    """Return one plan with the proposers of all problems."""
    plans = [make_plan(entry.config) for entry in order.entries]
    return Plan(tuple(dict.fromkeys(name for plan in plans for name in plan.proposers)))


def _servers(order: CampaignPlan) -> Servers:
    """Return the servers of the jobs, which in a study share the references of problems too."""
    parallel = order.config.parallel
    if not order.arms:
        return Servers(parallel)
    return SharedSessions(parallel, order.problems_of_a_device)


class CampaignRun:
    """The searches of a campaign's folder; `row` gives the progress row of a problem by its name.

    `tell` is called with a line for each rule that the campaign's memory gets. `lost` says why a
    problem was left out, by its index.
    """

    def __init__(
        self, path: Path, row: Callable[[str], ProgressRow], tell: Tell = lambda _: None
    ) -> None:
        manifest = read_manifest(path)
        self.path = path
        self.command: str = manifest["command"]
        self._order = CampaignPlan.from_json(manifest["order"])
        self._tell = tell
        self._servers = _servers(self._order)
        self._limits = self._order.config.limits
        self._shared = SharedLimits(self._servers, by_time=self._limits.seconds is not None)
        self._jobs = [self._job(entry, row(entry.name)) for entry in self._order.entries]
        self.lost: Mapping[int, AdaExploreError] = {}

    def _job(self, entry: CampaignEntry, row: ProgressRow) -> CampaignJob:
        in_flight = self._order.config.turn_steps
        return CampaignJob(entry, self.path, self._shared, row, in_flight)

    def run(self) -> None:
        """Search until every problem has ended or the budget is spent.

        Raises as `Campaign.run` does; what was recorded stays.
        """
        config, shared = self._order.config, self._shared
        for job in self._jobs:
            job.show()
        loop = Campaign(self._jobs, self._rules(), shared.spent)
        self.lost = loop.lost
        with ExitStack() as stack:
            if not config.store:  # in a database, each problem has a lock
                stack.enter_context(hold_lock(self.path))
            begun = [job for job in self._jobs if job.exists]
            stores = [stack.enter_context(read_run(job.path)).store for job in begun]
            for job, store in zip(begun, stores, strict=True):  # a bad one would end work half-way
                job.check_replies(store)
            shared.over = clock(self._limits, [n for store in stores for n in store.nodes()])
            plan = _plan(self._order)
            shared.clients = stack.enter_context(open_clients(config, plan, *stores))
            stack.callback(self._servers.close)
            if config.memory_update:
                lessons = lessons_of(self._order, self.path, shared.clients, self._tell)
                shared.lessons = stack.enter_context(closing(lessons))
                for job in self._jobs:  # a kill may have come between a turn and its lessons
                    job.learn()
            for job in self._jobs:  # after Ctrl-C, some are still at work
                stack.callback(job.suspend)
            try:
                loop.run()
            finally:
                self.lost = loop.lost

    def _rules(self) -> Rules:
        """Return the rules of turns; a study without a budget makes each run in one turn."""
        config = self._order.config
        first = config.first_steps
        if self._order.arms:
            whole = max(entry.config.planned_steps for entry in self._order.entries)
            first = config.turn_steps if config.budget else whole
        return Rules(
            allocation=config.allocation,
            parallel=config.parallel,
            turn_steps=config.turn_steps,
            first_steps=first,
            steps=self._limits.steps,
            in_rounds=bool(self._order.arms),
            shared=bool(config.store),
            of_a_gpu=None if config.ray else PROBLEMS_OF_A_GPU,
        )

    @property
    def is_study(self) -> bool:
        """True for a campaign of arms."""
        return bool(self._order.arms)

    @property
    def memory(self) -> Path | None:
        """The memory that grows, None where none does or it has no rule yet."""
        path = Path(self._order.config.memory_update)
        return path if path.is_file() else None

    @property
    def waits(self) -> bool:
        """True where prompts wait for an answer."""
        return any(job.waits() for job in self._jobs)

    def summary(self, over: str = "", *, reports: bool = True) -> CampaignSummary:
        """Summarize the searches as recorded, and with `reports` write the report of each.

        `over` is the reason that no search goes on, if there is one.
        """
        over = over or self._shared.spent() or ""
        nodes = [node for job in self._jobs for node in job.nodes()[0]]
        results = [self._result(i, over, reports=reports) for i in range(len(self._jobs))]
        return summarize_campaign(
            [*results, *map(self._left_out, self._order.excluded)],
            name=self.path.resolve().name,
            command=self.command,
            allocation=self._order.config.allocation,
            budget=self._order.config.budget or "",
            wall_s=max(busy_s(nodes), default=0.0),
        )

    def _result(self, index: int, over: str, *, reports: bool) -> Result:
        job, lost = self._jobs[index], self.lost.get(index)
        progress = job.progress()
        state: State = "done" if progress.ended else "open"
        rest = "no steps left" if job.exists else "not begun"
        reason = progress.ended or over or job.waits() or rest
        if lost:
            state, reason = "refused" if isinstance(lost, BadProblemError) else "broken", str(lost)
        fields: dict[str, Any] = {"summary": None, "folder": ""}
        if job.exists:
            with read_run(job.path) as run:
                summary = summary_of(run.store, job.path)
                if reports:
                    write_report(summary, run.report_path)
            fields = {"summary": summary, "folder": job.entry.name}
        entry = job.entry
        fields |= {"category": entry.category, "state": state, "reason": reason}
        return result_of(entry.name, entry.config.precision, job.device, **fields)

    def _left_out(self, one: Exclusion) -> Result:
        return result_of(
            one.key,
            self._order.config.precision,
            "",
            state="left_out",
            reason=one.reason,
            category=one.category,
        )
