"""Commands that make or continue a run: explore, resume."""

from __future__ import annotations

import shlex
import time
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from adaexplore.cli.adapt import learn_from_search
from adaexplore.cli.inspect import show_end
from adaexplore.cli.progress import SearchProgress, warn, working
from adaexplore.core.config import Config
from adaexplore.core.configure import parse_settings
from adaexplore.core.errors import AdaExploreError
from adaexplore.core.listener import Event, follow
from adaexplore.core.problem import Problem
from adaexplore.run import explore as application
from adaexplore.run.explore import STARTING, Changes, Order, checked
from adaexplore.run.parts import Parts
from adaexplore.run.proposers import Plan
from adaexplore.run.records import command
from adaexplore.run.session import (
    INTERRUPTED,
    Asked,
    Session,
    load_problem,
    open_session,
    preparation,
)
from adaexplore.store import read_run
from adaexplore.store.directory import DATABASE_NAME

DEFAULT_STEPS = 20


def explore(
    asked: Asked, *, steps: int | None, plan: Plan, run: Path | None, settings: list[str]
) -> int:
    """Make a run and search; return the exit code.

    Without `steps`, the budget's number of steps is planned, or else `DEFAULT_STEPS`.
    """
    chosen = parse_settings(settings)
    planned = [number for number in (steps, plan.limits.steps) if number is not None]
    steps = min(planned, default=DEFAULT_STEPS)
    problem = load_problem(asked)
    path = run or Path("runs") / f"{problem.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    order = checked(Order(problem, chosen, plan, steps, asked.seed, path, command=""))
    words = command("explore", asked, problem, steps, settings, order.plan)
    return _follow(Console(), application.explore(replace(order, command=words)), path)


def resume(
    path: Path,
    steps: int | None,
    parallel: int | None = None,
    *,
    budget: str = "",
    base_url: str = "",
    prompts: str = "",
) -> int:
    """Continue a run; return the exit code. Without `parallel`, as many steps at once as before.

    `budget`, `base_url` and `prompts` replace those of the run's plan permanently.
    """
    changes = Changes(steps, parallel, budget, base_url, prompts)
    return _follow(Console(), application.resume(path, changes, Parts()), path)


def start_session(
    stack: ExitStack, console: Console, problem: Problem, settings: Config, parallel: int = 1
) -> Session:
    """Starts the processes and has the reference judged: no run is made for one that cannot be."""
    with working(console, STARTING):
        running = stack.enter_context(open_session(problem, settings, parallel))
    warn(console, running.environment)
    with working(console, preparation(problem)):
        running.evaluator.prepare()
    return running


def _follow(console: Console, events: Generator[Event], path: Path) -> int:
    """Show a search until its end or Ctrl-C, then its results; return the exit code."""
    status = 0
    progress = SearchProgress(console)
    try:
        with progress:
            follow(events, progress)
    except KeyboardInterrupt:
        status = INTERRUPTED
        if not (path / DATABASE_NAME).is_file():
            console.print("stopped before the first step; no run was made", highlight=False)
            return status
        _say_how_to_go_on(console, path)
    except AdaExploreError:
        if progress.is_open:
            _say_how_to_go_on(console, path)
        raise
    with read_run(path) as directory:
        show_end(console, directory)
        plan = Plan.from_json(directory.store.run().plan, directory.store.run().proposer)
        if plan.memory_update and not status:
            status = learn_from_search(console, directory, plan)
        names = [p.name for p in (directory.best_path, directory.report_path) if p.exists()]
    files = f"{path}: {', '.join(['run.db', *names])}"
    console.print(files, highlight=False, markup=False, soft_wrap=True)
    return status


def _say_how_to_go_on(console: Console, path: Path) -> None:
    with read_run(path) as directory:
        done, planned = directory.store.node_count(), directory.store.run().steps
    console.print(
        f"stopped after {done} of {planned} steps; nothing recorded is lost. Go on with:\n"
        f"  adaexplore resume {shlex.quote(str(path))}",
        highlight=False,
        markup=False,
        soft_wrap=True,  # a command that is broken into two lines cannot be copied
    )
