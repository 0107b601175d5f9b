"""Making rules of failures: learn, and explore --memory-update."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console

from adaexplore.cli.adapt import say
from adaexplore.core.client import BudgetSpentError, Client
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import TargetName
from adaexplore.memory.extract import Failure, failures_of
from adaexplore.run.learn import Learned, learn
from adaexplore.run.place import Place
from adaexplore.run.proposers import Plan, check, open_clients
from adaexplore.run.session import INTERRUPTED
from adaexplore.store import RunDirectory, read_run

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
    failures = [failure for run in runs for failure in failures_in(run)]
    place = Place(device, target)
    with open_clients(plan) as clients:
        return learn_from(
            console,
            failures,
            memory,
            asks or folder_of(memory),
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
        return learn_from(console, failures, Path(plan.memory_update), folder, place, client, 1)


def failures_in(run: Path) -> list[Failure]:
    """What failed in a run by its candidates' own fault."""
    with read_run(run) as directory:
        return failures_of(directory.store.run().problem, directory.store.nodes())


def learn_from(
    console: Console,
    failures: Iterable[Failure],
    memory: Path,
    folder: Path,
    place: Place,
    client: Client | None,
    least_tasks: int,
) -> int:
    """Makes rules of failures; prompts wait in `folder` without a client. The exit code."""
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


def folder_of(memory: Path) -> Path:
    """Where the cases of a memory are kept if nobody says where."""
    return memory.with_name(f"{memory.stem}.learning")
