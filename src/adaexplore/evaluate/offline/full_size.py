"""A problem at its full size without memory: its arguments are meta tensors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core import codec
from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem, Workload
from adaexplore.core.verdict.facts import InputForm, OutputForm
from adaexplore.core.verdict.gradients import Gradients
from adaexplore.evaluate.kernels.count import OpCounter, bytes_of, without_values
from adaexplore.evaluate.offline.estimate import work_of_op
from adaexplore.evaluate.truth.forms import input_forms, output_forms
from adaexplore.evaluate.wire.messages import Pickled, pickled
from adaexplore.evaluate.wire.offline_messages import KernelWork
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import check_inputs, check_outputs, tensors_of

_OPERATOR = re.compile(r"aten::[\w.]+|torch\.[\w.]+")


@dataclass(frozen=True)
class FullSizeWorkload:
    """A workload at its full size.

    `inputs` are meta tensors, `works` the work of the reference's operations. `least_bytes` and
    `least_flops` are lower bounds for a call: each input and output once (parameters can be folded
    together ahead of time), and the products (see `estimate.least`).
    """

    name: str
    timed: bool
    inputs: Pickled
    outputs: tuple[OutputForm, ...]
    forms: tuple[InputForm, ...]
    works: tuple[KernelWork, ...]
    least_bytes: int
    least_flops: int


@dataclass(frozen=True)
class FullSize:
    """A problem at its full size; `why` is one line on why the meta device cannot run it, or "".

    `init` holds the constructor's arguments; `parameters` is the number of the model's parameters,
    `layers` that of its modules without modules inside; `gradients` are those of a training step.
    """

    why: str = ""
    init: Pickled = ""
    parameters: int = 0
    layers: int = 0
    workloads: tuple[FullSizeWorkload, ...] = ()
    gradients: Gradients | None = None

    @property
    def timed(self) -> list[FullSizeWorkload]:
        """The timed workloads of the problem; without any, its first workload."""
        return [w for w in self.workloads if w.timed] or list(self.workloads[:1])


def job(request: dict[str, Any]) -> dict[str, Any]:
    """Run the reference of `request["problem"]` on meta tensors; return a `FullSize` as JSON."""
    return codec.write(full_size(Problem.from_json(request["problem"])))  # type: ignore[no-any-return]


def full_size(problem: Problem) -> FullSize:
    """Run a problem's reference on meta tensors."""
    try:
        with without_values():
            instance = Instance.judged(problem, Path.cwd(), device="meta")
            workloads = tuple(_workload(problem, instance, w) for w in problem.workloads)
    except BadProblemError as error:
        return FullSize(why=_explained(error))
    return FullSize(
        init=pickled(instance.init),
        parameters=sum(p.numel() for p in instance.model.parameters()),
        layers=instance.layers,
        workloads=workloads,
        gradients=instance.gradients,
    )


def _explained(error: BadProblemError) -> str:
    """Return the message, or what it means that an operator does not know its shapes."""
    if not isinstance(error.__cause__, NotImplementedError):
        return str(error)
    place, _, message = str(error).partition(": ")
    operator = _OPERATOR.search(message)
    what = operator[0] if operator else "an operator"
    return (
        f"{place}: without data, PyTorch does not know what {what} returns (sparse tensors, or "
        "shapes that depend on values); judge it on a GPU: --device cuda"
    )


def _workload(problem: Problem, instance: Instance, workload: Workload) -> FullSizeWorkload:
    inputs = instance.inputs(problem.seed, workload)
    check_inputs(f"{problem.name}.py", workload.file or workload.draw, inputs)
    with OpCounter() as counter:
        outputs = instance(inputs)
    if not outputs:
        check_outputs(f"{problem.name}.py", outputs, instance.device)
    return FullSizeWorkload(
        name=workload.name,
        timed=workload.timed,
        inputs=pickled(inputs),
        outputs=output_forms(outputs),
        forms=input_forms(instance.model, inputs, workload),
        works=tuple(work_of_op(op, problem.precision) for op in counter.ops),
        least_bytes=sum(map(bytes_of, [*tensors_of(inputs), *(t for _, t in outputs)])),
        least_flops=counter.flops,
    )
