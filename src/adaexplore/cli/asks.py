"""Commands for those who answer prompts themselves: start, ask, tell, evaluate-pending."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from rich.console import Console

from adaexplore.cli.inspect import show_end
from adaexplore.cli.progress import SearchProgress, warn, working
from adaexplore.cli.run import start_session
from adaexplore.core.configure import parse_settings
from adaexplore.core.errors import BadInputError
from adaexplore.core.listener import follow
from adaexplore.core.proposer import Proposer
from adaexplore.run.ask_files import REPLY_SUFFIX, reply_files, study_of, tell_one, write_prompts
from adaexplore.run.explore import STARTING
from adaexplore.run.proposers import (
    COMPILER,
    Plan,
    check_answered,
    check_compiler,
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
    open_session,
    preparation,
)
from adaexplore.run.study import Study
from adaexplore.store import RunDirectory, create_run, open_run, require_free


def start(asked: Asked, *, steps: int, plan: Plan, run: Path | None, settings: list[str]) -> int:
    """Makes a run whose prompts wait for `ask`; the exit code."""
    console = Console()
    with ExitStack() as stack:
        try:
            path, running = new_run(
                stack, console, asked, steps=steps, plan=plan, run=run, settings=settings
            )
        except KeyboardInterrupt:
            console.print("stopped; no run was made", highlight=False)
            return INTERRUPTED
        with open_run(path) as directory:
            _seed(directory, running, console)
    say(console, f"{path} is ready. Take prompts with:\n  adaexplore ask {path} -o asks/")
    return 0


def new_run(
    stack: ExitStack,
    console: Console,
    asked: Asked,
    *,
    steps: int,
    plan: Plan,
    run: Path | None,
    settings: list[str],
) -> tuple[Path, Session]:
    """A new run that a person or an agent proposes for, and the processes of its problem."""
    chosen = parse_settings(settings)
    problem = load_problem(asked)
    plan = with_memory(with_templates(plan, plan.prompts), problem)
    if chosen.compiler_seeds:
        check_compiler(problem)
    path = run or Path("runs") / f"{problem.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    require_free(path)
    running = start_session(stack, console, problem, chosen)
    words = command("start", asked, problem, steps, settings, plan)
    record = record_of(running, problem, chosen, plan, asked.seed, steps, words)
    try_templates(plan, record)
    create_run(path, record).close()
    return path, running


def _seed(directory: RunDirectory, running: Session, console: Console) -> None:
    """Has the compiler make as many first steps as the settings say."""
    store = directory.store
    run = store.run()
    if not run.config.compiler_seeds:
        return
    proposers = {COMPILER: running.compiler(run.config)}
    with (
        closing(proposers[COMPILER]),
        SearchProgress(console, run.steps, 0) as progress,
        suppress(KeyboardInterrupt),  # those that are there will do
    ):
        for _ in range(min(run.config.compiler_seeds, run.steps)):
            study = Study(store, proposers)
            study.turn(study.ask(COMPILER).id)
            search = Search(store, proposers, running.evaluator, directory.best_path)
            follow(search.finish_queued(), progress)


def ask(path: Path, count: int, folder: Path, steps: int | None = None, prompts: str = "") -> int:
    """Opens so many asks and writes the prompts of all that are open; the exit code.

    `steps` is a new total of planned ones, `prompts` a folder with templates from now on.
    """
    console = Console()
    with open_run(path) as directory:
        _replan(directory, steps, prompts)
        for file, what in write_prompts(directory, count, folder).items():
            say(console, f"{file}: {what}; answer in {file.stem}{REPLY_SUFFIX}")
    return 0


def tell(path: Path, replies: list[Path]) -> int:
    """Takes replies from files or folders; the exit code: 0 if all could be taken, else 2."""
    console = Console()
    status = 0
    with open_run(path) as directory:
        study = study_of(directory)
        for file in reply_files(replies):
            try:
                said = tell_one(directory, study, file)
            except BadInputError as error:
                said, status = str(error), 2
            say(console, f"{file.name}: {said}")
    return status


def evaluate_pending(path: Path, parallel: int = 1) -> int:
    """Evaluates every candidate that waits for it, so many at once; the exit code."""
    console = Console()
    with open_run(path) as directory, ExitStack() as stack:
        store = directory.store
        run = store.run()
        check_answered(run, path)
        if not store.asks("queued"):
            console.print("nothing waits for its evaluation", highlight=False)
            return 0
        with working(console, STARTING):
            running = stack.enter_context(open_session(run.problem, run.config, parallel))
        warn(console, running.environment)
        with working(console, preparation(run.problem)):
            running.evaluator.prepare()
        status = 0
        try:
            with SearchProgress(console, run.steps, store.node_count()) as progress:
                nobody: dict[str, Proposer] = {}
                search = Search(
                    store, nobody, running.evaluator, directory.best_path, parallel=parallel
                )
                follow(search.finish_queued(), progress)
        except KeyboardInterrupt:
            status = INTERRUPTED
            running.evaluator.close()
        show_end(console, directory)
        return status


def _replan(directory: RunDirectory, steps: int | None, prompts: str) -> None:
    store = directory.store
    run = store.run()
    check_answered(run, directory.path)
    if prompts:
        plan = with_templates(Plan.from_json(run.plan, run.proposer), prompts)
        try_templates(plan, run)
        store.set_plan(plan.to_json())
    if steps is not None:
        store.set_steps(max(steps, store.node_count()))


def say(console: Console, text: str) -> None:
    """Prints text as it is; a command that is broken into two lines cannot be copied."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)
