"""First tries at tasks with one memory or another: a run for each task and memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from adaexplore.core import (
    MANUAL,
    BadInputError,
    BudgetSpentError,
    Config,
    Context,
    Environment,
    Failed,
    ModelClient,
    Node,
    Passed,
    Platform,
    Problem,
    Proposer,
    Rule,
    estimated_tokens,
    follow,
)
from adaexplore.run import (
    Ledger,
    Plan,
    Search,
    Session,
    model_proposers,
    recalling,
    record_of,
    session_on,
    take_replies,
    write_prompts,
)
from adaexplore.sandbox import ForkServer
from adaexplore.store import RunDirectory, Store, is_run, make_run, open_run, read_run
from adaexplore_lab.lift.summary import RIGHT, TaskTries, rules_in

FIRST_TRY = Config(
    policy="ps",
    p_strategy=0.0,
    p_contrast=0.0,
    ask_again=False,
    lint=False,
    recheck=False,
    confirm=False,
    ask_expires_h=1e6,
)
"""Independent steps from nothing, each of one reply. What the memory in the prompt is worth is to
be measured, so nothing is mended by lint."""
MAY_CHANGE = ("lint", "memory_tokens", "timeout_s", "memory_gb", "outage_patience_s")
"""Config with which a first try is one still."""

_RETRIES = 2
_NO_KERNEL = frozenset({"no-custom-kernel", "own-kernels-not-launched"})


@dataclass(frozen=True, slots=True)
class MemoryArm:
    """Rules of the prompts of one arm: a memory's, or those of a memory `without` a rule."""

    name: str
    rules: tuple[Rule, ...] = ()
    without: str = ""


@dataclass(frozen=True)
class FirstTries:
    """First tries in a folder: `repeats` of them at each task in each arm.

    The first arm has no memory, and the second is what others may leave a rule out of. `plan` names
    a model, or `MANUAL`, whose prompts and replies are files. `demands` are what some tasks are
    asked for besides, by their names.
    """

    folder: Path
    arms: tuple[MemoryArm, ...]
    settings: Config
    repeats: int
    where: Platform
    plan: Plan
    demands: Mapping[str, str] = field(default_factory=dict)

    def arms_for(self, problem: Problem) -> list[MemoryArm]:
        """The arms of a task: leaving out a rule that its prompt has not would change nothing."""
        return [arm for arm in self.arms if not arm.without or self._has(problem, arm.without)]

    def require_same(self, problem: Problem) -> None:
        """Raise `BadInputError` if the folder's tries were made with other options."""
        now = (problem, self.proposer, self._settings(problem))
        for path in self._runs(problem).values():
            with read_run(path) as run:
                record = run.store.run()
            then = (record.problem, record.proposers[0], _tried_with(record.config))
            what = ("another task", f"{record.proposers[0]} as the model", "other settings")
            for before, after, name in zip(then, now, what, strict=True):
                if before != after:
                    raise BadInputError(
                        f"{path} was begun with {name}; go on as it began, or name another --work"
                    )

    def stores(self, problems: Iterable[Problem], stack: ExitStack) -> list[Store]:
        """The stores of all runs that are there, open for reading until the stack is closed."""
        paths = [path for problem in problems for path in self._runs(problem).values()]
        return [stack.enter_context(read_run(path)).store for path in paths]

    def attempt(
        self, server: ForkServer, clients: Mapping[str, ModelClient], problem: Problem
    ) -> list[Path]:
        """Make the missing tries; return the prompts that wait for a person's replies.

        All prompts of a task are made in one session, so that they differ in the rules alone.
        Raises `BadProblemError` for a task whose reference cannot be judged, and `BudgetSpentError`
        where the budget ends it.
        """
        for arm, path in self._runs(problem).items():
            if self._by_hand and _waits(path):
                take_replies(path, self._asks(problem, arm))
        if self._is_to_do(problem):
            with ExitStack() as stack:
                running = stack.enter_context(session_on(server, problem, self._settings(problem)))
                runs = [
                    stack.enter_context(self._opened(running, problem, arm))
                    for arm in self.arms_for(problem)
                ]
                for run in runs:
                    self._begin(run.store)
                for run in runs:
                    self._go_on(run, running, clients)
        return self._written(problem) if self._by_hand else []

    def attempted(self, problem: Problem) -> list[TaskTries]:
        """Return the tries so far, by arm."""
        found = []
        for arm in self.arms_for(problem):
            path = self._path(problem, arm.name)
            if is_run(path):
                with read_run(path) as run:
                    found.append(self._of(problem, arm, run.store))
        return found

    def spoiled(self, problem: Problem) -> list[str]:
        """A line for each try that the machinery failed to judge, and nobody judged since."""
        found = []
        for arm, path in self._runs(problem).items():
            with read_run(path) as run:
                nodes = _TryCounts.of(run.store).spoiled
            verdicts = (node.evaluation for node in nodes)
            found += [
                f"{problem.name}, {arm}: {failed.status}: {failed.reason}"
                for failed in verdicts
                if isinstance(failed, Failed)
            ]
        return found

    def _settings(self, problem: Problem) -> Config:
        return self.settings.model_copy(update={"demand": self.demands.get(problem.name, "")})

    @property
    def proposer(self) -> str:
        """Name of the proposer that makes the tries."""
        return self.plan.proposers[0]

    @property
    def _by_hand(self) -> bool:
        return self.proposer == MANUAL

    def _has(self, problem: Problem, rule: str) -> bool:
        """Return True if a first prompt with the memory has a rule."""
        capability = self.where.target.removeprefix("sm_")
        environment = Environment(triton=self.where.triton, compute_capability=capability)
        recall = recalling(self.arms[1].rules, self._settings(problem))
        told = recall(Context(problem, "large", 0, environment=environment))
        return any(one.name == rule and one.statement in told for one in self.arms[1].rules)

    def _path(self, problem: Problem, arm: str) -> Path:
        return self.folder / "runs" / arm / problem.name

    def _asks(self, problem: Problem, arm: str) -> Path:
        return self.folder / "asks" / arm / problem.name

    def _runs(self, problem: Problem) -> dict[str, Path]:
        """The runs of a task that are there, by arm."""
        paths = {arm.name: self._path(problem, arm.name) for arm in self.arms}
        return {arm: path for arm, path in paths.items() if is_run(path)}

    def _is_to_do(self, problem: Problem) -> bool:
        """Return True if a run is missing, or can go on without a person."""
        runs = self._runs(problem)
        if any(arm.name not in runs for arm in self.arms_for(problem)):
            return True
        for path in runs.values():
            with read_run(path) as run:
                standing = _TryCounts.of(run.store)
            waiting = standing.queued if self._by_hand else standing.under_way
            if waiting or standing.missing(self.repeats):
                return True
        return False

    def _opened(self, running: Session, problem: Problem, arm: MemoryArm) -> RunDirectory:
        """A run, open for writing; made where there is none."""
        path = self._path(problem, arm.name)
        if not is_run(path):
            plan = replace(self.plan, rules=arm.rules)
            words = f"adaexplore-lab lift, {arm.name}"
            own = {"memory": arm.name, "steps": self.repeats}
            config = self._settings(problem).model_copy(update=own)
            record = record_of(running, problem, config, plan, words)
            make_run(path, record)
        return open_run(path)

    def _begin(self, store: Store) -> int:
        """Open the missing asks; return their number.

        What the machinery spoiled is judged again, and not asked for again.
        """
        standing = _TryCounts.of(store)
        missing = standing.missing(self.repeats)
        again = standing.spoiled[:missing]
        steps = store.node_count() + standing.under_way + missing
        store.set_config(store.run().config.with_steps(steps))
        ledger = Ledger(store, _proposers(store))
        for node in again:
            ask = ledger.choose(self.proposer)
            ledger.begin(ask)
            ledger.queue(ask, node.proposal)
        for _ in range(missing - len(again)):
            ledger.prompt(self.proposer)
        return missing

    def _go_on(
        self, run: RunDirectory, running: Session, clients: Mapping[str, ModelClient]
    ) -> None:
        for retry in range(_RETRIES + 1):
            if retry and not self._begin(run.store):
                return
            search = Search(
                run.store,
                _proposers(run.store),
                running.evaluator,
                run.best_path,
                clients=clients,
            )
            if self._by_hand:
                follow(search.finish_queued())
            elif reason := follow(search.run()):
                raise BudgetSpentError(reason)

    def _written(self, problem: Problem) -> list[Path]:
        """The files of all prompts that wait, written anew."""
        files: list[Path] = []
        for arm, path in self._runs(problem).items():
            if _waits(path):
                with open_run(path) as run:
                    files += write_prompts(run, 0, self._asks(problem, arm))
        return files

    def _of(self, problem: Problem, arm: MemoryArm, store: Store) -> TaskTries:
        judged = [node for node in store.nodes() if _is_judged(node)][: self.repeats]
        calls = store.calls()
        told = [message.text for message in calls[0].prompt.messages] if calls else []
        return TaskTries(
            problem.name,
            arm.name,
            outcomes=tuple(_outcome(node) for node in judged),
            rules=rules_in("\n".join(told), arm.rules),
            prompt_tokens=sum(map(estimated_tokens, told)),
        )


@dataclass(frozen=True, slots=True)
class _TryCounts:
    """Counts of a run's tries, and those that the machinery `spoiled` and nobody judged since."""

    judged: int
    queued: int
    under_way: int
    spoiled: tuple[Node, ...]

    @staticmethod
    def of(store: Store) -> _TryCounts:
        """Return the counts of a run."""
        nodes, waiting = store.nodes(), store.asks("open", "queued")
        judged = sum(map(_is_judged, nodes))
        queued = sum(record.state == "queued" for record in waiting)
        # What is judged again was not asked for again: only the first has replies.
        still_open = {record.ask.id for record in waiting if record.state == "open"}
        answered = {call.ask_id for call in store.calls()} - still_open
        lost = len(answered) - judged - queued
        spoiled = [node for node in nodes if not _is_judged(node)]
        return _TryCounts(judged, queued, len(waiting), tuple(spoiled[len(spoiled) - lost :]))

    def missing(self, repeats: int) -> int:
        """Return the number of tries that are neither judged nor in flight."""
        return max(repeats - self.judged - self.under_way, 0)


def _tried_with(config: Config) -> Config:
    """Return the settings of tries, without the fields that differ between the runs of a folder."""
    return config.model_copy(update={"memory": "", "steps": None})


def _proposers(store: Store) -> dict[str, Proposer]:
    run = store.run()
    return model_proposers(Plan.of(run), run.config)


def _waits(path: Path) -> bool:
    """Return True if asks of a run wait for replies."""
    with read_run(path) as run:
        return bool(run.store.asks("open"))


def _is_judged(node: Node) -> bool:
    return node.evaluation.status != "infra_error"


def _outcome(node: Node) -> str:
    """`RIGHT`, or what kept a try from that."""
    evaluation = node.evaluation
    if node.proposal.failure:
        return "no_module"
    if not isinstance(evaluation, Passed):
        return evaluation.status
    return "no_kernel" if _NO_KERNEL & set(evaluation.labels) else RIGHT
