"""A search from its order to its report, as events; the same for every front end."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from adaexplore.core.config import Config
from adaexplore.core.environment import Environment
from adaexplore.core.evaluator import Evaluator
from adaexplore.core.listener import Event, Finished, Notice, Opened, Working
from adaexplore.core.node import planned_steps
from adaexplore.core.problem import Problem
from adaexplore.core.proposer import Proposer
from adaexplore.run.parts import Parts
from adaexplore.run.proposers import (
    COMPILER,
    NO_PARTS,
    Plan,
    check,
    check_compiler,
    check_searched,
    check_update,
    chooser,
    clock,
    model_proposers,
    open_clients,
    try_templates,
    with_memory,
    with_templates,
)
from adaexplore.run.records import record_of
from adaexplore.run.results import write_report_of
from adaexplore.run.search import Search
from adaexplore.run.session import Session, notices, open_session, preparation
from adaexplore.store import RunDirectory, RunRecord, create_run, open_run, require_free

STARTING = "starting the worker processes (importing torch takes some seconds)"


@dataclass(frozen=True, slots=True)
class Order:
    """A search to begin: its problem, its options, and the folder of its run.

    `command` is the command line that makes the same run, empty where objects of the user make that
    impossible.
    """

    problem: Problem
    config: Config
    plan: Plan
    steps: int
    seed: int
    path: Path
    command: str
    parts: Parts = NO_PARTS
    notices: tuple[str, ...] = ()


def checked(order: Order) -> Order:
    """Return the order with its templates and rules read.

    Raises `BadInputError` for an order that cannot be carried out. No process is started.
    """
    problem, plan, parts = order.problem, order.plan, order.parts
    if COMPILER in plan.proposers or order.config.compiler_seeds:
        check_compiler(problem)
    require_free(order.path)
    check(plan, parts)
    plan = with_memory(with_templates(plan, plan.prompts), problem)
    check_update(plan, problem)
    return replace(order, plan=plan)


def explore(order: Order) -> Generator[Event]:
    """Make a run and search it to its end.

    All state is in the run's folder: closing the generator, or Ctrl-C, leaves a run that `resume`
    continues. Raises as `Search.run` does.
    """
    for text in order.notices:
        yield Notice(text)
    with ExitStack() as stack:
        running = yield from _session(
            stack, order.problem, order.config, order.plan, order.plan.parallel, order.parts
        )
        record = record_of(
            running,
            order.problem,
            order.config,
            order.plan,
            order.seed,
            order.steps,
            order.command,
        )
        try_templates(order.plan, record)
        directory = stack.enter_context(create_run(order.path, record))
        yield from _search(directory, running, order.plan.parallel, order.parts)


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of a run that goes on; a field that is empty or None leaves it as it was.

    `budget`, `base_url` and `prompts` replace those of the run's plan permanently.
    """

    steps: int | None = None
    parallel: int | None = None
    budget: str = ""
    base_url: str = ""
    prompts: str = ""


def resume(path: Path, changes: Changes, parts: Parts) -> Generator[Event]:
    """Continue a run; raises as `explore` does, and `BadInputError` for a run that cannot go on."""
    with ExitStack() as stack:
        directory = stack.enter_context(open_run(path))
        store = directory.store
        run = store.run()
        check_searched(run, path)
        plan = Plan.from_json(run.plan, run.proposer)
        changed = replace(
            plan,
            budget=changes.budget or plan.budget,
            base_url=changes.base_url or plan.base_url,
        )
        changed = with_templates(changed, changes.prompts)
        check(changed, parts)
        if changes.prompts:
            try_templates(changed, run)
        elif run.plan.get("prompts_digest", plan.digest) != plan.digest:
            yield Notice("note: the prompts are not those that the run began with")
        if changed != plan:
            store.set_plan(changed.to_json())
        limit = changed.limits.steps if changes.budget else None
        planned = [n for n in (changes.steps, limit) if n is not None]
        if planned:
            store.set_steps(max(min(planned), len(planned_steps(store.nodes()))))
        parallel = changes.parallel or plan.parallel
        running = yield from _session(stack, run.problem, run.config, changed, parallel, parts)
        yield from _search(directory, running, parallel, parts)


def start_session(
    stack: ExitStack,
    problem: Problem,
    config: Config,
    parallel: int = 1,
    evaluator: Evaluator | None = None,
) -> Generator[Event, None, Session]:
    """Start the processes of a problem and have its reference verified and timed.

    `evaluator` takes the place of the package's own.
    """
    yield Working(STARTING)
    running = stack.enter_context(open_session(problem, config, parallel))
    for line in notices(running.environment):
        yield Notice(line)
    if evaluator:
        running = replace(running, evaluator=evaluator)
    yield Working(preparation(problem))
    running.evaluator.prepare()
    return running


def _session(
    stack: ExitStack, problem: Problem, config: Config, plan: Plan, parallel: int, parts: Parts
) -> Generator[Event, None, Session]:
    """Start a session; one without processes where nothing of the run needs any."""
    by_compiler = COMPILER in plan.proposers or config.compiler_seeds
    if parts.evaluator is None or (by_compiler and COMPILER not in parts.proposers):
        return (yield from start_session(stack, problem, config, parallel, parts.evaluator))
    parts.evaluator.prepare()
    return Session(None, parts.evaluator, Environment(device=problem.device))


def _search(
    directory: RunDirectory, running: Session, parallel: int, parts: Parts
) -> Generator[Event]:
    """Search to the end and write the report."""
    yield Opened(directory.path)
    store = directory.store
    run = store.run()
    plan = Plan.from_json(run.plan, run.proposer)
    try:
        with (
            _proposers(running, run, plan, parts) as proposers,
            open_clients(plan, store, parts=parts) as clients,
        ):
            yield from Search(
                store,
                proposers,
                running.evaluator,
                directory.best_path,
                clients=clients,
                choose=chooser(plan, run.config, store),
                spent=clock(plan.limits, store.nodes()),
                parallel=parallel,
                make_policy=parts.make_policy,
            ).run()
    finally:
        if parts.evaluator is None:  # an evaluation under way would keep the device from others
            running.evaluator.close()
        write_report_of(directory)
    yield Finished(directory.path)


@contextmanager
def _proposers(
    running: Session, run: RunRecord, plan: Plan, parts: Parts
) -> Iterator[Mapping[str, Proposer]]:
    """Give the proposers of a run by name; close those that the package made."""
    own = model_proposers(plan, run.config) | running.tuning(run.problem)
    own[COMPILER] = running.compiler(run.config)
    try:
        yield own | dict(parts.proposers)
    finally:
        for proposer in own.values():
            proposer.close()
