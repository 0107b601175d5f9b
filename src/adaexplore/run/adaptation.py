"""Attempts at tasks: who makes them, the tasks whose failures teach rules, and those failures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from adaexplore.core.ask import MANUAL
from adaexplore.core.config import Config
from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.memory.extract import Failure, failures_of
from adaexplore.memory.techniques import technique_demands
from adaexplore.run.attempts import Task
from adaexplore.run.machine import Machine
from adaexplore.run.proposers import Plan, check, proposers, with_templates
from adaexplore.store import read_run

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
"""A first try and its repair: the tree grows from the node that failed. Lint is off, so that every
failure reaches the evaluator."""
_STEPS = 2


def attempt_plan(model: str, *, budget: str = "", memory: str = "", prompts: str = "") -> Plan:
    """Return the plan of attempts by a model, or with "" by a person who answers prompts in files.

    Raises `BadInputError` for a model that cannot be asked and options that do not go together.
    """
    if not model:
        if budget:
            raise BadInputError("--budget goes with --model; there is none")
        return with_templates(Plan((MANUAL,), memory=memory), prompts)
    plan = Plan(proposers([model], compiler=False), budget=budget, memory=memory)
    plan = with_templates(plan, prompts)
    check(plan)
    return plan


def adaptation_tasks(
    problems: Path,
    work: Path,
    plan: Plan,
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
            ATTEMPT.model_copy(update={"demand": demand}),
            plan,
            _STEPS,
            "adaexplore adapt",
            work / "asks" / problem.name,
        )
        for problem, demand in zip(loaded, texts, strict=True)
    ]


def failures_in(run: Path) -> list[Failure]:
    """Return the failures of a run that are its candidates' own fault."""
    with read_run(run) as directory:
        return failures_of(directory.store.run().problem, directory.store.nodes())
