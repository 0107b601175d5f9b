"""The command that attempts tasks and learns from what fails: adapt --problems."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from adaexplore.cli.adapt import problems_in, say
from adaexplore.cli.learn import failures_in, folder_of, learn_from
from adaexplore.core.ask import MANUAL
from adaexplore.core.client import BudgetSpentError
from adaexplore.core.config import Config
from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.core.problem import TargetName
from adaexplore.memory.techniques import demands
from adaexplore.run.attempts import Task, attempt_all
from adaexplore.run.place import Place, at_once
from adaexplore.run.proposers import Plan, check, open_clients
from adaexplore.run.session import INTERRUPTED

ATTEMPT = Config(
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


def adapt_by_tasks(
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
    parallel: int | None,
    techniques: bool,
) -> int:
    """Attempts tasks and makes rules of what fails; the exit code.

    Each has a run of its own in the folder `work`; what is there is not done again. Without a model
    prompts are written there, and replies are read there.
    """
    console = Console()
    if budget and not model:
        raise BadInputError("--budget goes with --model; there is none")
    plan = Plan(proposers=(model or MANUAL,), budget=budget, memory=memory)
    if model:
        check(plan)
    place = Place(device, target)
    work = work or folder_of(output)
    found = _tasks(console, problems, tasks, plan, work, place, techniques=techniques)
    waits: list[Path] = []
    status = right = done = 0
    with open_clients(plan) as clients:
        try:
            for attempted in attempt_all(found, clients, parallel or at_once()):
                name = attempted.task.problem.name
                if attempted.lost:
                    say(console, f"{name}: left out: {attempted.lost}")
                elif attempted.waits:
                    waits += attempted.waits
                else:
                    done, right = done + 1, right + attempted.right
                    say(console, f"{name}: {'right' if attempted.right else 'failed'}")
        except BudgetSpentError as error:
            say(console, f"stopping: {error}")
        except KeyboardInterrupt:
            say(console, "stopped; the same command goes on")
            return INTERRUPTED
        if done:
            say(console, f"{right} of {done} tasks came out right")
        runs = sorted(task.run for task in found if task.run.exists())
        failures = [failure for run in runs for failure in failures_in(run)]
        if failures:
            client, rules = clients.get(model), work / "rules"
            status = learn_from(console, failures, output, rules, place, client, least_tasks)
    if waits:
        say(
            console,
            f"{len(waits)} prompts wait in {work / 'asks'}: answer TASK/1.1.md in "
            "TASK/1.1.reply.md and so on, and run the same command again",
        )
    return status


def _tasks(
    console: Console,
    problems: Path,
    count: int,
    plan: Plan,
    work: Path,
    place: Place,
    *,
    techniques: bool,
) -> list[Task]:
    """The tasks of a folder; with `techniques`, each asks for another one of those that fit it."""
    loaded = list(problems_in(console, problems, place, count))
    texts = [""] * len(loaded)
    if techniques:
        texts = demands([problem.source for problem in loaded], on_gpu=place.target is None)
    found = []
    for problem, demand in zip(loaded, texts, strict=True):
        settings = ATTEMPT.model_copy(update={"demand": demand})
        run, asks = work / "runs" / problem.name, work / "asks" / problem.name
        found.append(Task(problem, run, settings, plan, _STEPS, "adaexplore adapt", asks))
    if not found:
        raise BadProblemError(f"{problems} holds no problem that can be loaded")
    return found
