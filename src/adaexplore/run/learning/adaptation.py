"""Tasks that teach rules: who attempts or searches them, and their failures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import make_config
from adaexplore.memory.extract import Failure, failures_of
from adaexplore.memory.techniques import technique_demands
from adaexplore.memory.unchecked.sentences import errors_of
from adaexplore.run.learning.attempts import TaskRun
from adaexplore.run.learning.lessons import Way
from adaexplore.run.learning.machine import Machine
from adaexplore.run.proposers import COMPILER, check, make_plan
from adaexplore.run.recall import not_taught
from adaexplore.store import read_run
from adaexplore.store.published import published_runs

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
    steps=2,
)
"""A first try and its repair: the tree grows from the node that failed. Lint is off, so that every
failure reaches the evaluator."""

SEARCH = Config(confirm=False, lint=False)
"""A search of a task, whose winner is of no further use."""


def attempt_config(model: str, *, budget: str = "", memory: str = "", prompts: str = "") -> Config:
    """Return the configuration of attempts by a model, or with "" by a person.

    Raises `BadInputError` for a model that cannot be asked and options that do not go together.
    """
    if budget and not model:
        raise BadInputError("--budget goes with --model; there is none")
    proposer = {"model": model} if model else {"proposer": MANUAL}
    given = {**proposer, "memory": memory, "prompts": prompts}
    config = make_config(given | ({"budget": budget} if budget else {}))
    if model:
        check(config, make_plan(config))
    return config


def task_config(given: Config) -> Config:
    """Return the configuration of the tasks: `given` over that of attempts, or of searches.

    A memory that grows has searches. Raises `BadInputError` for a model that cannot be asked and
    options that do not go together.
    """
    if given.budget and not given.model:
        raise BadInputError("--budget goes with --model; there is none")
    if given.proposer == COMPILER:
        raise BadInputError("--proposer compiler: rules come from what a model or a person writes")
    config = given.over(SEARCH if given.grow else ATTEMPT)
    if objection := not_taught(given.language or "triton", config.learning):
        raise BadInputError(f"--language {given.language}: {objection}")
    if not given.model:
        return config.model_copy(update={"proposer": MANUAL})
    check(config, make_plan(config))
    return config


def adaptation_tasks(
    problems: Path,
    work: Path,
    config: Config,
    machine: Machine,
    *,
    limit: int,
    techniques: bool,
    skipped: Callable[[str], None],
) -> list[TaskRun]:
    """Return a task for each of the first `limit` problems of a folder, with its run below `work`.

    `config` is that of `task_config`. With `techniques`, each prompt demands another of the
    techniques that fit its problem. `skipped` is called with a line for each file that is no
    problem. Raises `BadProblemError` where none is.
    """
    plan = make_plan(config)
    own = config.model_copy(update={"budget": None})
    loaded = list(machine.problems(problems, skipped, limit, config))
    if not loaded:
        raise BadProblemError(f"{problems} holds no problem that can be loaded")
    texts = [""] * len(loaded)
    if techniques:
        sources = [problem.source for problem in loaded]
        texts = technique_demands(sources, language=machine.language, on_gpu=machine.target is None)
    return [
        TaskRun(
            problem,
            work / "runs" / problem.name,
            own.model_copy(update={"demand": demand}) if demand else own,
            plan,
            "adaexplore adapt",
            work / "asks" / problem.name,
        )
        for problem, demand in zip(loaded, texts, strict=True)
    ]


def failures_in(run: Path, way: Way = "checked") -> list[Failure]:
    """Return the failures that rules are made of, in the given way: a run's, or those of the
    published runs in a folder.
    """
    if theirs := published_runs(run):
        return [failure for one in theirs for failure in failures_in(one, way)]
    with read_run(run) as directory:
        problem, nodes = directory.store.run().problem, directory.store.nodes()
    if way == "checked":
        return failures_of(problem, nodes)
    folder = hashlib.sha256(str(run.resolve()).encode()).hexdigest()[:6]
    task = f"{problem.name}-{folder}"  # several runs of one problem count each
    return [replace(failure, task=task) for failure in errors_of(problem, nodes)]
