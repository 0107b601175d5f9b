"""Commands that make rules of failures: learn, adapt --model, and explore --memory-update."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from adaexplore.cli.adapt import Place, say
from adaexplore.cli.proposers import Plan, check, model_proposers, open_clients, with_memory
from adaexplore.cli.records import record_of
from adaexplore.cli.session import INTERRUPTED, Asked, load_problem, session
from adaexplore.errors import BadInputError, BadProblemError
from adaexplore.evaluation import Passed
from adaexplore.explore import Listener, Search
from adaexplore.learn import Learned, learn
from adaexplore.llm.base import BudgetSpentError, Client
from adaexplore.memory.extract import Failure, failures_of
from adaexplore.problem import Problem, TargetName
from adaexplore.settings import Settings
from adaexplore.store import RunDirectory, create_run, open_run, read_run

ATTEMPT = Settings(
    policy="uct",
    c=0.0,
    expand_ratio=0.0,
    p_large=0.0,
    p_strategy=0.0,
    p_contrast=0.0,
    reviser=False,
    confirm=False,
    lint=False,
)
"""A first try and its repair: the tree grows from what failed. Rules are learned from failures that
evaluation saw, so nothing is kept from it."""
_STEPS = 2

MOST_EVALUATIONS = 200
"""To reduce one failing candidate; each takes a fraction of a second."""


def learn_from_runs(
    runs: Sequence[Path],
    *,
    memory: Path,
    model: str,
    asks: Path | None,
    budget: str,
    least_tasks: int,
    device: str | None,
    target: TargetName | None,
) -> int:
    """Makes rules of the failures of runs; the exit code."""
    console = Console()
    if budget and not model:
        raise BadInputError("--budget goes with --model; there is none")
    plan = Plan(proposers=(model,) if model else (), budget=budget)
    if model:
        check(plan)
    failures = [failure for run in runs for failure in _failures_in(run)]
    place = Place(device, target)
    with open_clients(plan) as clients:
        return _learn(
            console,
            failures,
            memory,
            asks or _folder_of(memory),
            place,
            clients.get(model),
            least_tasks,
        )


def learn_from_search(console: Console, directory: RunDirectory, plan: Plan) -> int:
    """Makes rules of what failed in a search, by the first of its models; the exit code."""
    run = directory.store.run()
    failures = failures_of(run.problem, directory.store.nodes())
    place = Place(run.problem.device, run.problem.target)
    with open_clients(plan, directory.store) as clients:
        client = clients[plan.models[0]]
        folder = directory.path / "rules"
        return _learn(console, failures, Path(plan.memory_update), folder, place, client, 1)


def adapt_by_model(
    problems: Path,
    *,
    tasks: int,
    model: str,
    memory: str,
    output: Path,
    work: Path | None,
    budget: str,
    least_tasks: int,
    device: str | None,
    target: TargetName | None,
) -> int:
    """Attempts tasks and makes rules of what fails; the exit code.

    Each has a run of its own in the folder `work`; what is there is not done again.
    """
    console = Console()
    plan = Plan(proposers=(model,), budget=budget, memory=memory)
    check(plan)
    files = sorted(path for path in problems.glob("*.py"))[:tasks]
    if not files:
        raise BadInputError(f"{problems} holds no problems: files that end in .py")
    place = Place(device, target)
    work = work or _folder_of(output)
    asked = Asked(files[0], "triton", device, "fp32", "as-built", 0, target=target)
    failures: list[Failure] = []
    right = tried = 0
    with open_clients(plan) as clients:
        for file in files:
            try:
                problem = load_problem(replace(asked, path=file))
                run = work / "runs" / problem.name
                passed = _attempt(problem, plan, run, clients)
            except BadProblemError as error:
                say(console, f"{file.name}: left out: {error}")
                continue
            except BudgetSpentError as error:
                say(console, f"stopping: {error}")
                break
            except KeyboardInterrupt:
                say(console, "stopped; the same command goes on")
                return INTERRUPTED
            tried, right = tried + 1, right + passed
            failures += _failures_in(run)
            say(console, f"{problem.name}: {'right' if passed else 'failed'}")
        say(console, f"{right} of {tried} tasks came out right")
        return _learn(console, failures, output, work / "rules", place, clients[model], least_tasks)


def _attempt(problem: Problem, plan: Plan, path: Path, clients: dict[str, Client]) -> bool:
    """Whether a task comes out right by a first try or a repair; goes on with a run that is there.

    Raises `BudgetSpentError` where the budget ends it before that is known.
    """
    settings = ATTEMPT
    with ExitStack() as stack:
        if path.exists():
            directory = stack.enter_context(open_run(path))
            plan = Plan.from_json(directory.store.run().plan, plan.proposers[0])
            if _is_done(directory):
                return _is_right(directory)
            running = stack.enter_context(session(problem, settings))
        else:
            plan = with_memory(plan, problem)
            running = stack.enter_context(session(problem, settings))
            record = record_of(running, problem, settings, plan, 0, _STEPS, "adaexplore adapt")
            path.parent.mkdir(parents=True, exist_ok=True)
            directory = stack.enter_context(create_run(path, record))
        Search(
            directory.store,
            model_proposers(plan, settings),
            running.evaluator,
            Listener(),
            directory.best_path,
            clients=clients,
            spent=lambda: "it is right" if _is_right(directory) else None,
        ).run()
        if not _is_done(directory):
            raise BudgetSpentError("the budget is spent")
        return _is_right(directory)


def _is_right(directory: RunDirectory) -> bool:
    return any(isinstance(node.evaluation, Passed) for node in directory.store.nodes())


def _is_done(directory: RunDirectory) -> bool:
    return _is_right(directory) or directory.store.node_count() >= _STEPS


def _failures_in(run: Path) -> list[Failure]:
    with read_run(run) as directory:
        return failures_of(directory.store.run().problem, directory.store.nodes())


def _learn(
    console: Console,
    failures: Iterable[Failure],
    memory: Path,
    folder: Path,
    place: Place,
    client: Client | None,
    least_tasks: int,
) -> int:
    found = list(failures)
    say(console, f"{len(found)} failures of candidates; trying them on {place}")
    with closing(place.checker()) as checker:
        try:
            learned = learn(
                found,
                memory,
                folder,
                checker,
                ask=client.ask if client else None,
                least_tasks=least_tasks,
                most_evaluations=MOST_EVALUATIONS,
                tell=lambda line: say(console, line),
            )
        except BudgetSpentError as error:
            say(console, f"stopping: {error}; the same command goes on")
            return 0
        except KeyboardInterrupt:
            say(console, "stopped; the same command goes on")
            return INTERRUPTED
    _say_what_came(console, learned, memory)
    return 0


def _say_what_came(console: Console, learned: Learned, memory: Path) -> None:
    counts = (
        f"{len(learned.rules)} new rules, {len(learned.counted)} known ones counted, "
        f"{len(learned.dropped)} cases without a rule"
    )
    say(console, f"{memory}: {counts}")
    for path in learned.open:
        say(console, f"{path}: answer in {path.stem}.reply.md, and run the same command again")


def _folder_of(memory: Path) -> Path:
    """Where the cases of a memory are kept if nobody says where."""
    return memory.with_name(f"{memory.stem}.learning")
