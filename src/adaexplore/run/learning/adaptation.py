"""Attempts at tasks: who makes them, the tasks whose failures teach rules, and those failures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from adaexplore.core.ask import MANUAL
from adaexplore.core.config import Config
from adaexplore.core.configure import make_config
from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.memory.extract import Failure, failures_of
from adaexplore.memory.techniques import technique_demands
from adaexplore.run.learning.attempts import Task
from adaexplore.run.learning.machine import Machine
from adaexplore.run.proposers import check, make_plan
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


def adaptation_tasks(
    problems: Path,
    work: Path,
    config: Config,
    machine: Machine,
    *,
    limit: int,
    techniques: bool,
    skipped: Callable[[str], None],
) -> list[Task]:
    """Return a task for each of the first `limit` problems of a folder, with its run below `work`.

    With `techniques`, each prompt demands another of the techniques that fit its problem. `skipped`
    is called with a line for each file that is no problem. Raises `BadProblemError` where none is.
    """
    plan = make_plan(config)
    attempt = ATTEMPT.over(config).model_copy(update={"budget": None})
    loaded = list(machine.problems(problems, skipped, limit))
    if not loaded:
        raise BadProblemError(f"{problems} holds no problem that can be loaded")
    texts = [""] * len(loaded)
    if techniques:
        sources = [problem.source for problem in loaded]
        texts = technique_demands(sources, on_gpu=machine.target is None)
    return [
        Task(
            problem,
            work / "runs" / problem.name,
            attempt.model_copy(update={"demand": demand}),
            plan,
            "adaexplore adapt",
            work / "asks" / problem.name,
        )
        for problem, demand in zip(loaded, texts, strict=True)
    ]


def failures_in(run: Path) -> list[Failure]:
    """Return the failures of a run, or of the published runs in a folder, by candidates' fault."""
    if theirs := published_runs(run):
        return [failure for one in theirs for failure in failures_in(one)]
    with read_run(run) as directory:
        return failures_of(directory.store.run().problem, directory.store.nodes())
