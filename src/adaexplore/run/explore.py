"""A search from its order to its report, as events; the same for every front end."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from adaexplore.core.ask import MANUAL
from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import planned_steps
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.evaluator import Evaluator
from adaexplore.core.protocols.listener import Event, Finished, Notice, Opened, Stopping, Working
from adaexplore.core.protocols.proposer import Proposer
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import option_name
from adaexplore.propose.tuner.proposer import ORIGIN as TUNER
from adaexplore.propose.tuner.proposer import Tuner
from adaexplore.propose.tuner.space import space_of
from adaexplore.run.asks.ledger import Ledger
from adaexplore.run.outcome.results import write_report_of
from adaexplore.run.outcome.winner import confirmed_of, to_confirm, write_best
from adaexplore.run.parts import Parts
from adaexplore.run.proposers import (
    COMPILER,
    NO_PARTS,
    Plan,
    check,
    check_compiler,
    check_update,
    chooser,
    clock,
    make_plan,
    model_proposers,
    open_clients,
    try_templates,
    with_memory,
    with_starts,
    with_templates,
)
from adaexplore.run.records import command, record_of, settled
from adaexplore.run.search import Search
from adaexplore.run.session import (
    Session,
    notices,
    open_session,
    preparation,
    require_judges,
    take_present_gpu,
)
from adaexplore.run.starts import starts_left
from adaexplore.store import RunDirectory, RunRecord, Store, create_run, open_run, require_free

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
    path: Path
    command: str = ""
    parts: Parts = NO_PARTS
    notices: tuple[str, ...] = ()


def run_path(name: str, config: Config) -> Path:
    """Return the folder of a run that begins now, of the problem of that name."""
    return Path(config.run or f"runs/{name}-{time.strftime('%Y%m%d-%H%M%S')}")


def make_order(
    problem: Problem,
    config: Config,
    path: Path,
    *,
    source: Path | None = None,
    parts: Parts = NO_PARTS,
    notices: tuple[str, ...] = (),
) -> Order:
    """Return the order of a search, with its templates and rules read.

    `source` is the file of the problem, None where no command line can name it. Raises
    `BadInputError` for an order that cannot be carried out. No process is started.
    """
    plan = with_starts(make_plan(config, parts), config, source or Path(problem.name))
    if COMPILER in plan.proposers or config.compiler_seeds:
        check_compiler(problem)
    require_free(path)
    check(config, plan, parts)
    check_update(config, problem.language)
    plan, config = with_memory(plan, settled(config, problem), problem)
    words = command(source, config) if source and not plan.objects else ""
    return Order(problem, config, plan, path, words, parts, notices)


def explore(order: Order) -> Generator[Event]:
    """Make a run and search it to its end.

    All state is in the run's folder: closing the generator, or Ctrl-C, leaves a run that `resume`
    continues. Raises as `Search.run` does.
    """
    for text in order.notices:
        yield Notice(text)
    with ExitStack() as stack:
        directory, running = yield from begin(stack, order)
        if MANUAL in order.plan.proposers:
            yield from _seed(directory, running)
        else:
            yield from _search(directory, running, order.parts)


def begin(stack: ExitStack, order: Order) -> Generator[Event, None, tuple[RunDirectory, Session]]:
    """Start the processes of an order and make its run, once the reference is judged."""
    running = yield from _session(stack, order.problem, order.config, order.plan, order.parts)
    record = record_of(running, order.problem, order.config, order.plan, order.command)
    try_templates(order.plan, record)
    return stack.enter_context(create_run(order.path, record)), running


_MAY_CHANGE = ("steps", "parallel", "budget", "base_url", "prompts", "ray")


def resume(path: Path, given: Config, parts: Parts = NO_PARTS) -> Generator[Event]:
    """Continue a run to its planned steps; evaluate the replies of one answered by hand.

    The fields given replace those of the run permanently: steps, parallel, budget, base_url,
    prompts and ray may change. A run with nothing left to do starts no process. Raises as `explore`
    does, and `BadInputError` for a run that cannot go on.
    """
    for name in given.model_fields_set:
        if name not in _MAY_CHANGE:
            raise BadInputError(
                f"{option_name(name)}: a run goes on as it began; it may change "
                f"{', '.join(map(option_name, _MAY_CHANGE))}"
            )
    with ExitStack() as stack:
        directory = stack.enter_context(open_run(path))
        store = directory.store
        if moved := take_present_gpu(store):
            yield Notice(moved)
        run = store.run()
        plan = Plan.of(run)
        if not given.prompts and _has_new_prompts(run, plan):
            yield Notice("note: the prompts are not those that the run began with")
        plan = with_templates(plan, given.prompts)
        config = _extended(given, run.config, len(planned_steps(store.nodes())))
        require_judges(config)
        check(config, plan, parts)
        if given.prompts:
            try_templates(plan, run)
            store.set_plan(plan.to_json())
        if config != run.config:
            store.set_config(config)
        if not _is_work_left(store, config):
            nodes = store.nodes()
            write_best(nodes, confirmed_of(nodes, store), directory.best_path)  # after a kill
            yield Opened(path)
            yield Notice(_nothing_left(store, plan))
            yield Finished(path)
            return
        running = yield from _session(stack, run.problem, config, plan, parts)
        if MANUAL in plan.proposers:
            yield from _evaluate_queued(directory, running)
        else:
            yield from _search(directory, running, parts)


def _has_new_prompts(run: RunRecord, plan: Plan) -> bool:
    """Return True where this release renders other prompts than the run began with."""
    if MANUAL in plan.proposers:
        return False  # replies are evaluated here; no prompt is rendered
    return bool(run.plan.get("prompts_digest", plan.digest) != plan.digest)


def _extended(given: Config, config: Config, made: int) -> Config:
    """Return the configuration with the given changes; at least the steps made stay planned."""
    changed = given.over(config)
    if "steps" in given.model_fields_set or "budget" in given.model_fields_set:
        steps = [given.steps, given.limits.steps]
        planned = [number for number in steps if number is not None]
        if planned:
            changed = changed.with_steps(max(min(planned), made))
    return changed


def _is_work_left(store: Store, config: Config) -> bool:
    """True where a step is under way or planned, or the winner is not confirmed yet."""
    nodes = store.nodes()
    if MANUAL in store.run().proposers:
        return bool(store.asks("queued")) or starts_left(store)
    if len(planned_steps(nodes)) < store.run().steps:
        return True
    return config.confirm and to_confirm(nodes, store, config.confirm_top) is not None


def _nothing_left(store: Store, plan: Plan) -> str:
    if MANUAL in plan.proposers:
        return "nothing waits for its evaluation"
    return f"all {store.run().steps} steps are made; plan more with --steps"


def start_session(
    stack: ExitStack,
    problem: Problem,
    config: Config,
    evaluator: Evaluator | None = None,
) -> Generator[Event, None, Session]:
    """Start the processes of a problem and have its reference verified and timed.

    `evaluator` takes the place of the package's own.
    """
    yield Working(STARTING)
    running = stack.enter_context(open_session(problem, config, config.parallel))
    for line in notices(running.environment):
        yield Notice(line)
    if evaluator:
        running = replace(running, evaluator=evaluator)
    yield Working(preparation(problem))
    running.evaluator.prepare()
    return running


def _session(
    stack: ExitStack, problem: Problem, config: Config, plan: Plan, parts: Parts
) -> Generator[Event, None, Session]:
    """Start a session; one without processes where nothing of the run needs any."""
    by_compiler = COMPILER in plan.proposers or config.compiler_seeds
    if parts.evaluator is None or (by_compiler and COMPILER not in parts.proposers):
        return (yield from start_session(stack, problem, config, parts.evaluator))
    parts.evaluator.prepare()
    return Session(None, parts.evaluator, Environment(device=problem.device))


def _search(directory: RunDirectory, running: Session, parts: Parts) -> Generator[Event]:
    """Search to the end and write the report."""
    yield Opened(directory.path)
    store = directory.store
    run = store.run()
    plan, config = Plan.of(run), run.config
    try:
        with (
            _proposers(running, run, plan, parts) as proposers,
            open_clients(config, plan, store, parts=parts) as clients,
        ):
            yield from Search(
                store,
                proposers,
                running.evaluator,
                directory.best_path,
                clients=clients,
                choose=chooser(plan, config, store),
                spent=clock(config.limits, store.nodes()),
                parallel=config.parallel,
                make_policy=parts.make_policy,
            ).run()
    finally:
        if parts.evaluator is None:  # an evaluation under way would keep the device from others
            running.evaluator.close()
        write_report_of(directory)
    yield Finished(directory.path)


def tune(path: Path, variants: int, parallel: int = 1) -> Generator[Event]:
    """Try `variants` variants of a run's best kernel in all; raises as `resume` does.

    A kernel without numbers to vary starts no process.
    """
    with ExitStack() as stack:
        directory = stack.enter_context(open_run(path))
        store = directory.store
        run = store.run()
        base = Ledger(store, {TUNER: Tuner()}).to_tune
        if base is None:
            raise BadInputError(f"{path} has no correct kernel to tune yet")
        yield Opened(path)
        if space_of(base.candidate, run.problem).size < 2:
            yield Stopping(f"step {base.id} has no numbers to tune")
        else:
            config = run.config.model_copy(update={"parallel": parallel})
            running = yield from start_session(stack, run.problem, config)
            try:
                yield from Search(
                    store,
                    running.tuning(run.problem),
                    running.evaluator,
                    directory.best_path,
                    parallel=parallel,
                ).tune(variants)
            finally:
                running.evaluator.close()
        write_report_of(directory)
        yield Finished(path)


def _evaluate_queued(directory: RunDirectory, running: Session) -> Generator[Event]:
    """Evaluate the candidates that wait for it, and write the report."""
    yield Opened(directory.path)
    nobody: dict[str, Proposer] = {}
    store = directory.store
    parallel = store.run().config.parallel
    try:
        search = Search(store, nobody, running.evaluator, directory.best_path, parallel=parallel)
        yield from search.start()
        yield from search.finish_queued()
    finally:
        running.evaluator.close()
        write_report_of(directory)
    yield Finished(directory.path)


def _seed(directory: RunDirectory, running: Session) -> Generator[Event]:
    """Judge starting kernels and have the compiler make the first steps; then prompts wait."""
    yield Opened(directory.path)
    store = directory.store
    run = store.run()
    if run.config.start_from:
        yield from Search(store, {}, running.evaluator, directory.best_path).start()
    if run.config.compiler_seeds:
        proposers = {COMPILER: running.compiler(run.config)}
        with closing(proposers[COMPILER]):
            for _ in range(min(run.config.compiler_seeds, run.steps)):
                ledger = Ledger(store, proposers)
                ledger.turn(ledger.ask(COMPILER).id)
                search = Search(store, proposers, running.evaluator, directory.best_path)
                yield from search.finish_queued()
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
