"""What the judge finds out about a reference without timing it, for code that nobody trusts yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.reference import Reference


def job(request: dict[str, Any]) -> dict[str, Any]:
    """Whether {"problem"} can be judged, from its reference's own runs; for a confined worker.

    Gives the facts "labels" (see `probes`), "outputs", "parameters", "errors" and "notes", or in
    one line "why" it cannot be judged; else that is empty.
    """
    problem = Problem.from_json(request["problem"])
    try:
        reference = Reference(problem, Path.cwd())
        labels = reference.labels
    except BadProblemError as error:
        return {"why": str(error)}
    for path, tensor in reference.outputs:
        if not bool(torch.isfinite(tensor).all()):
            return {"why": f"{problem.name}.py: {path} is not finite"}
    return {
        "why": "",
        "labels": labels,
        "outputs": [
            {"path": path, "shape": list(t.shape), "dtype": str(t.dtype).partition(".")[2]}
            for path, t in reference.outputs
        ],
        "parameters": sum(p.numel() for p in reference.instance.model.parameters()),
        "errors": reference.errors,
        "notes": reference.notes,
    }
