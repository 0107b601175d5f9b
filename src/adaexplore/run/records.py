"""The record of a run that begins, and the command line that makes the same run."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from adaexplore.core.problem import Problem
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import words
from adaexplore.run.proposers import Plan
from adaexplore.run.session import Session
from adaexplore.store import RunRecord


def record_of(
    running: Session, problem: Problem, config: Config, plan: Plan, command: str
) -> RunRecord:
    """Return the record of a run that begins now, its reference judged.

    Raises `BadProblemError` for a reference that cannot be verified against.
    """
    return RunRecord(
        problem=problem,
        config=config,
        proposers=plan.proposers,
        environment=running.environment,
        command=command,
        created_at=time.time(),
        reference=running.evaluator.prepare(),
        plan=plan.to_json(),
    )


def settled(config: Config, problem: Problem) -> Config:
    """Return the configuration of a run with the defaults that depend on the machine resolved."""
    return config.model_copy(
        update={
            "language": problem.language,
            "device": problem.device,
            "target": problem.target,
            "steps": config.planned_steps,
        }
    )


def command(path: Path, config: Config) -> str:
    """Return the command line that makes a run of the problem in a file."""
    return shlex.join(["adaexplore", "explore", str(path), *words(config)])
