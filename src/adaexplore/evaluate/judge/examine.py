"""A job that examines a reference without timing it, for references that nobody trusts yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.truth.compare import exact


def job(request: dict[str, Any]) -> dict[str, Any]:
    """Say whether `request["problem"]` can be judged, from its reference's own runs.

    A job for a confined worker. Returns "facts" (a `ReferenceFacts` without times) and "why": one
    line where the problem cannot be judged, else "".
    """
    problem = Problem.from_json(request["problem"])
    try:
        reference = Reference(problem, Path.cwd())
        facts = reference.untimed_facts()
    except BadProblemError as error:
        return _refused(str(error))
    for workload in reference.workloads:
        for path, tensor in workload.outputs:
            if not bool(torch.isfinite(exact(tensor)).all()):
                return _refused(f"{problem.name}.py: {path} is not finite")
    return {"why": "", "facts": facts.to_json()}


def _refused(why: str) -> dict[str, Any]:
    return {"why": why, "facts": ReferenceFacts().to_json()}
