"""The right results of the trials: other batch sizes, weights made on the CPU, gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeVar

import torch
from torch import Tensor

from adaexplore.core.errors import BadProblemError
from adaexplore.evaluate.candidate.uses import call, gradients, with_leaves
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.truth.compare import Truth, bounds_from, deviation, exact
from adaexplore.evaluate.truth.precision import floors
from adaexplore.evaluate.truth.reference_runs import ReferenceRun, reference_runs
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.widen import widened
from adaexplore.evaluate.wire.tensors import SharedTensor, share
from adaexplore.sandbox.user.user_code import is_out_of_memory
from adaexplore.sandbox.user.values import Inputs, flatten_outputs, map_tensors, tensors_of

_Made = TypeVar("_Made")
_ILL_CONDITIONED = 0.05  # as for the truths of a verification
_FACTOR = 4.0  # of PyTorch's own error in a gradient
_FLOOR = 0.02  # a sign that rounding decides (ReLU at 0) changes single elements
_NO_BASIS = 0.1  # PyTorch's own gradients this far from float64 tell nothing
_MOST_BYTES = 1 << 30  # of leaves: no gradients of larger models are tried


@dataclass(frozen=True)
class BatchSet:
    """Inputs of another batch size in shared memory, the truth, and memory for outputs."""

    inputs: Inputs
    shared: list[SharedTensor]
    truths: list[Truth]
    buffers: list[SharedTensor]


@dataclass(frozen=True)
class MovedWeights:
    """The weights of a reference that is constructed on the CPU, and the truth for them."""

    parameters: dict[str, SharedTensor]
    truths: list[Truth]


@dataclass(frozen=True)
class Leaf:
    """The right gradient of a leaf, and the largest relative error of a right one.

    `bound` is None where PyTorch's own gradient is no basis for a verdict. `leaf` is a parameter's
    name, or an input's number among the floating-point ones.
    """

    leaf: str | int
    value: Tensor
    bound: float | None
    place: SharedTensor


class Expected:
    """The right results of the trials of one reference, on one of its workloads.

    Each is made when it is first needed, and None where the reference has no such result.
    """

    def __init__(self, reference: Reference, workload: JudgedWorkload) -> None:
        self.workload = workload
        self._reference = reference
        self._given = workload.from_problem

    @cached_property
    def larger(self) -> BatchSet | None:
        """A batch with more rows."""
        return self._batch(lambda rows: (rows + 1, 2 * rows))

    @cached_property
    def smaller(self) -> BatchSet | None:
        """A batch with fewer rows."""
        return self._batch(lambda rows: (rows // 2,) if rows > 1 else ())

    @cached_property
    def moved(self) -> MovedWeights | None:
        """The weights that the constructor makes on the CPU."""
        runs, instance = copy.copy(self.workload.runs), self._reference.instance
        problem = self._reference.problem

        def make() -> MovedWeights | None:
            on_cpu = replace(instance, device=torch.device("cpu"))
            made = on_cpu.rebuilt(problem.seed, problem.mode)
            made.model.to(instance.device)
            runs.instance = replace(made, device=instance.device)
            outputs, _ = reference_runs(runs, self._given.inputs, self._frozen)
            truths = self._truths(outputs)
            weights = {name: share(t) for name, t in made.model.state_dict().items()}
            return MovedWeights(weights, truths) if truths else None

        return _if_possible(make)

    @cached_property
    def weight_leaves(self) -> list[Leaf]:
        """The gradients of the parameters."""
        return self._leaves(of_inputs=False)

    @cached_property
    def all_leaves(self) -> list[Leaf]:
        """The gradients of floating-point inputs, then of the parameters."""
        return self._leaves(of_inputs=True)

    @property
    def _frozen(self) -> Sequence[bool]:
        return self.workload.truths.inputs.frozen

    def _batch(self, sizes: Callable[[int], tuple[int, ...]]) -> BatchSet | None:
        """Return the first such batch that the reference takes."""
        for inputs in _resized(self._given.inputs, sizes):
            found = _if_possible(partial(self._batch_of, inputs))
            if found:
                return found
        return None

    def _batch_of(self, inputs: Inputs) -> BatchSet | None:
        problem, workload = self._reference.problem, self.workload.workload
        runs = ReferenceRuns(problem, self._reference.instance, inputs, workload)
        outputs, _ = reference_runs(runs, inputs, self._frozen)
        truths = self._truths(outputs)
        if truths is None:
            return None
        shared = [share(tensor) for tensor in tensors_of(inputs)]
        buffers = [share(t.contiguous()) for _, t in runs.run(runs.precision, inputs)]
        return BatchSet(inputs, shared, truths, buffers)

    def _truths(self, outputs: Sequence[ReferenceRun]) -> list[Truth] | None:
        """Return the truths with the bounds of inputs unlike the problem's own."""
        known = self._given.truths
        if len(outputs) != len(known) or any(
            not o.strictest.norm <= _ILL_CONDITIONED or o.shaky for o in outputs
        ):
            return None
        truths = []
        for output, own in zip(outputs, known, strict=True):
            bounds = bounds_from(output.by_class, floors(output.dtype, from_problem=False))
            offered = {p: bound for p, bound in bounds.items() if p in own.bounds}
            truths.append(
                Truth(output.path, output.value, offered, output.ties, output.error_scale, False)
            )
        return truths

    def _leaves(self, *, of_inputs: bool) -> list[Leaf]:
        """Return the leaves with a gradient; none for a model too large, or without gradients."""
        model, runs = self._reference.instance.model, self.workload.runs
        names = [n for n, p in model.named_parameters() if p.requires_grad]
        given = tensors_of(self._given.inputs) if of_inputs else []
        tensors = [*given, *model.parameters()]
        if sum(t.nbytes for t in tensors) > _MOST_BYTES:
            return []

        def make() -> list[Leaf]:
            with runs.scope(runs.precision):
                found = self._gradients(of_inputs, names)
            with widened(model):
                exactly = self._gradients(of_inputs, names, wide=True)
            leaves: list[str | int] = [*range(len(found) - len(names)), *names]
            return [
                Leaf(leaf, truth, _bound(own, truth), share(own))
                for leaf, own, truth in zip(leaves, found, exactly, strict=True)
                if own is not None and truth is not None
            ]

        return _if_possible(make) or []

    def _gradients(
        self, of_inputs: bool, names: Sequence[str], *, wide: bool = False
    ) -> list[Tensor | None]:
        instance = self._reference.instance
        inputs, leaves = self._given.inputs, list[Tensor]()
        if wide:
            inputs = map_tensors(lambda t: t.double() if t.is_floating_point() else t, inputs)
        if of_inputs:
            inputs, leaves = with_leaves(inputs)
        own = dict(instance.model.named_parameters())
        with instance.boundary.entering("backward()"), torch.enable_grad():
            outputs = [out for _, out in flatten_outputs(call(instance.model, inputs))]
            return gradients(outputs, [*leaves, *(own[name] for name in names)])


def _if_possible(make: Callable[[], _Made]) -> _Made | None:
    """Return what is made; None where the reference raises, or memory is short."""
    try:
        return make()
    except BadProblemError:
        return None
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return None


def _resized(inputs: Inputs, sizes: Callable[[int], tuple[int, ...]]) -> Iterator[Inputs]:
    """Yield inputs with other first dimensions: of every tensor of that size, or the first one."""
    tensors = tensors_of(inputs)
    first = next((t for t in tensors if t.dim() and t.shape[0]), None)
    if first is None:
        return
    rows = first.shape[0]
    alike = [t for t in tensors if t.dim() and t.shape[0] == rows]
    for count in sizes(rows):
        for chosen in (alike, [first]):
            yield map_tensors(partial(_resized_if_in, chosen, count), inputs)


def _resized_if_in(chosen: Sequence[Tensor], rows: int, tensor: Tensor) -> Tensor:
    return _with_rows(tensor, rows) if any(tensor is each for each in chosen) else tensor


def _with_rows(tensor: Tensor, rows: int) -> Tensor:
    """Return a tensor with its first rows only, or with its first rows once more."""
    missing = rows - tensor.shape[0]
    return torch.cat([tensor, tensor[:missing]]) if missing > 0 else tensor[:rows].clone()


def _bound(own: Tensor, truth: Tensor) -> float | None:
    error = deviation(own, exact(truth)).norm
    return max(_FLOOR, _FACTOR * error) if error <= _NO_BASIS else None
