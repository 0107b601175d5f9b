"""What a run is made with: its record, and the command line that makes the same."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence

from adaexplore.core.config import Config
from adaexplore.core.problem import Problem
from adaexplore.run.proposers import COMPILER, Plan
from adaexplore.run.session import Asked, Session
from adaexplore.store import RunRecord


def record_of(
    running: Session,
    problem: Problem,
    settings: Config,
    plan: Plan,
    seed: int,
    steps: int,
    command: str,
) -> RunRecord:
    """The record of a run that begins now, its reference judged.

    Raises `BadProblemError` for a reference that cannot be verified against.
    """
    return RunRecord(
        problem=problem,
        config=settings,
        seed=seed,
        proposer=",".join(plan.proposers),
        steps=steps,
        environment=running.environment,
        command=command,
        created_at=time.time(),
        reference=running.evaluator.prepare(),
        plan=plan.to_json(),
    )


def command(
    name: str, asked: Asked, problem: Problem, steps: int, settings: Sequence[str], plan: Plan
) -> str:
    """The command line that makes the same run."""
    words = ["adaexplore", name, str(asked.path), "--steps", str(steps)]
    for model in plan.models:
        words += ["--model", model]
    words += ["--proposer", COMPILER] if COMPILER in plan.proposers else []
    words += ["--parallel", str(plan.parallel)] if plan.parallel > 1 else []
    for option in ("budget", "prompts", "record", "replay", "base_url", "memory", "memory_update"):
        value = getattr(plan, option)
        words += [f"--{option.replace('_', '-')}", value] if value else []
    words += ["--language", problem.language]
    words += ["--device", problem.device, "--precision", problem.precision]
    words += ["--mode", problem.mode, "--seed", str(asked.seed)]
    words += ["--target", problem.target] if problem.target else []
    words += ["--require-custom"] if problem.checks.require_custom else []
    for pair in settings:
        words += ["--set", pair]
    return shlex.join(words)
