"""A problem at its full size without its memory: arguments as meta tensors."""

from __future__ import annotations

import base64
import pickle
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem
from adaexplore.evaluate.kernels.count import OpCounter, bytes_of, without_values
from adaexplore.evaluate.offline.estimate import work_of_op
from adaexplore.sandbox.user_code import Instance
from adaexplore.sandbox.values import check_outputs, tensors_of


def job(request: dict[str, Any]) -> dict[str, Any]:
    """A problem's arguments, pickled with meta tensors, and the shapes that come out.

    A job (see `sandbox.jobs`) from {"problem"} to {"init", "inputs", "outputs", "parameters",
    "works", "least", "why"}; "works" holds what the operations of the reference do, and "least" the
    bytes and FLOPs that it takes at least: its inputs and outputs once, since parameters can be
    folded together ahead of time, and its products (see `estimate`). Where the file does not run on
    the meta device there is only "why", in one line; else it is empty.
    """
    problem = Problem.from_json(request["problem"])
    try:
        with without_values():
            instance = Instance.of(problem, Path.cwd(), device="meta")
            inputs = instance.inputs(problem.seed, problem.workloads[0])
            with OpCounter() as counter:
                outputs = instance(inputs)
            if not outputs or any(t.numel() == 0 for _, t in outputs):
                check_outputs(f"{problem.name}.py", outputs)
    except BadProblemError as error:
        return {"why": str(error)}
    return {
        "init": _pickled(instance.init),
        "inputs": _pickled(inputs),
        "parameters": sum(p.numel() for p in instance.model.parameters()),
        "outputs": [
            {"path": path, "shape": list(t.shape), "dtype": str(t.dtype).partition(".")[2]}
            for path, t in outputs
        ],
        "works": [asdict(work_of_op(op, problem.precision)) for op in counter.ops],
        "least": {
            "bytes_moved": sum(map(bytes_of, [*tensors_of(inputs), *(t for _, t in outputs)])),
            "flops": counter.flops,
        },
        "why": "",
    }


def _pickled(value: Any) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()
