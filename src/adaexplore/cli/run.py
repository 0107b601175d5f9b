"""Commands that make or continue a run: explore, resume."""

from __future__ import annotations

import shlex
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from adaexplore.cli.inspect import show_end
from adaexplore.cli.learn import learn_from_search
from adaexplore.cli.progress import SearchProgress, working
from adaexplore.core.config import Config
from adaexplore.core.configure import parse_settings
from adaexplore.core.errors import AdaExploreError
from adaexplore.core.node import searched
from adaexplore.core.problem import Problem
from adaexplore.run.proposers import (
    COMPILER,
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
from adaexplore.run.records import command, record_of
from adaexplore.run.search import Search
from adaexplore.run.session import (
    INTERRUPTED,
    Asked,
    Session,
    load_problem,
    preparation,
    session,
    warn,
)
from adaexplore.store import RunDirectory, create_run, open_run, require_free

STARTING = "starting the worker processes (importing torch takes some seconds)"
DEFAULT_STEPS = 20


def explore(
    asked: Asked, *, steps: int | None, plan: Plan, run: Path | None, settings: list[str]
) -> int:
    """Makes a run and searches; the exit code.

    Without `steps` there are as many as the budget says, or else `DEFAULT_STEPS`.
    """
    console = Console()
    chosen = parse_settings(settings)
    planned = [number for number in (steps, plan.limits.steps) if number is not None]
    steps = min(planned, default=DEFAULT_STEPS)
    problem = load_problem(asked)
    if COMPILER in plan.proposers or chosen.compiler_seeds:
        check_compiler(problem)
    path = run or Path("runs") / f"{problem.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    require_free(path)  # said at once, not after the workers have started
    check(plan)
    plan = with_memory(with_templates(plan, plan.prompts), problem)
    check_update(plan, problem)
    with ExitStack() as stack:
        try:
            running = start_session(stack, console, problem, chosen, plan.parallel)
        except KeyboardInterrupt:
            console.print("stopped before the first step; no run was made", highlight=False)
            return INTERRUPTED
        words = command("explore", asked, problem, steps, settings, plan)
        record = record_of(running, problem, chosen, plan, asked.seed, steps, words)
        try_templates(plan, record)
        directory = stack.enter_context(create_run(path, record))
        return _search(directory, running, console, plan.parallel)


def resume(
    path: Path,
    steps: int | None,
    parallel: int | None = None,
    *,
    budget: str = "",
    base_url: str = "",
    prompts: str = "",
) -> int:
    """Continues a run; the exit code. Without `parallel`, as many steps at once as before.

    `budget`, `base_url` and `prompts` take the place of those in the run's plan, for good.
    """
    console = Console()
    with open_run(path) as directory, ExitStack() as stack:
        store = directory.store
        run = store.run()
        check_searched(run, path)
        plan = Plan.from_json(run.plan, run.proposer)
        changed = replace(plan, budget=budget or plan.budget, base_url=base_url or plan.base_url)
        changed = with_templates(changed, prompts)
        check(changed)
        if prompts:
            try_templates(changed, run)
        elif run.plan.get("prompts_digest", plan.digest) != plan.digest:
            console.print("note: the prompts are not those that the run began with")
        if changed != plan:
            store.set_plan(changed.to_json())
        planned = [n for n in (steps, changed.limits.steps if budget else None) if n is not None]
        if planned:
            store.set_steps(max(min(planned), len(searched(store.nodes()))))
        parallel = parallel or plan.parallel
        try:
            running = start_session(stack, console, run.problem, run.config, parallel)
        except KeyboardInterrupt:
            _say_how_to_go_on(directory, console)
            return INTERRUPTED
        return _search(directory, running, console, parallel)


def start_session(
    stack: ExitStack, console: Console, problem: Problem, settings: Config, parallel: int = 1
) -> Session:
    """Starts the processes and has the reference judged: no run is made for one that cannot be."""
    with working(console, STARTING):
        running = stack.enter_context(session(problem, settings, parallel))
    warn(console, running.environment)
    with working(console, preparation(problem)):
        running.evaluator.prepare()
    return running


def _search(directory: RunDirectory, running: Session, console: Console, parallel: int) -> int:
    """Runs the search to its end or to Ctrl-C, then shows and reports what there is."""
    store = directory.store
    run = store.run()
    plan = Plan.from_json(run.plan, run.proposer)
    proposers = model_proposers(plan, run.config) | {COMPILER: running.compiler(run.config)}
    proposers |= running.tuning(run.problem)
    status = 0
    try:
        with (
            open_clients(plan, store) as clients,
            SearchProgress(console, run.steps + run.config.tune, store.node_count()) as progress,
        ):
            Search(
                store,
                proposers,
                running.evaluator,
                progress,
                directory.best_path,
                clients=clients,
                choose=chooser(plan, run.config, store),
                spent=clock(plan.limits, store.nodes()),
                parallel=parallel,
            ).run()
    except KeyboardInterrupt:
        status = INTERRUPTED
        running.evaluator.close()  # what is under way would keep the device from others
        _say_how_to_go_on(directory, console)
    except AdaExploreError:
        _say_how_to_go_on(directory, console)
        raise
    finally:
        for proposer in proposers.values():
            proposer.close()
    show_end(console, directory)
    if plan.memory_update and not status:
        status = learn_from_search(console, directory, plan)
    names = [p.name for p in (directory.best_path, directory.report_path) if p.exists()]
    files = f"{directory.path}: {', '.join(['run.db', *names])}"
    console.print(files, highlight=False, markup=False, soft_wrap=True)
    return status


def _say_how_to_go_on(directory: RunDirectory, console: Console) -> None:
    done, planned = directory.store.node_count(), directory.store.run().steps
    console.print(
        f"stopped after {done} of {planned} steps; nothing recorded is lost. Go on with:\n"
        f"  adaexplore resume {shlex.quote(str(directory.path))}",
        highlight=False,
        markup=False,
        soft_wrap=True,  # a command that is broken into two lines cannot be copied
    )
