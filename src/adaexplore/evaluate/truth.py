"""The truth that candidates are held to: input sets, float64 outputs, and bounds for each class."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from adaexplore.errors import BadProblemError
from adaexplore.evaluate.compare import Deviation, Truth, bounds_from, deviation, exact
from adaexplore.evaluate.inputs import InputSet, input_sets
from adaexplore.evaluate.runs import ReferenceRuns
from adaexplore.evaluate.tensors import SharedTensor, fingerprint, share
from adaexplore.problem import Precision
from adaexplore.sandbox.instance import Inputs, map_tensors, tensors_of

_MIN_SETS = 3
_MEMORY_SHARE = 0.15  # of the GPU, for inputs and truths; the rest is for running
_ILL_CONDITIONED = 0.05  # strict eager this far from float64: no basis for a verdict


@dataclass(frozen=True)
class CheckedSet:
    """An input set in shared memory and the truth for it."""

    name: str
    own: bool
    inputs: Inputs
    shared: list[SharedTensor]
    marks: list[int]
    truths: list[Truth]

    def intact(self) -> bool:
        """Whether the inputs still hold what they held."""
        return [fingerprint(s.tensor) for s in self.shared] == self.marks

    def restore(self, original: Inputs) -> None:
        """Puts the original values back."""
        for s, tensor in zip(self.shared, tensors_of(original), strict=True):
            s.fill(tensor)


class Truths:
    """The checked sets of a reference.

    `errors` maps a class to the largest error of PyTorch's own run in it, on the problem's own
    inputs. Raises `BadProblemError` where there is no own input set to verify on.
    """

    def __init__(self, runs: ReferenceRuns, notes: list[str]) -> None:
        self._runs = runs
        self._notes = notes
        self.errors: dict[Precision, float] = {}
        self.sets = self._checked_sets()

    def _checked_sets(self) -> list[CheckedSet]:
        problem = self._runs.problem
        checked: list[CheckedSet] = []
        for candidate in input_sets(self._runs.instance, problem.seed):
            if len(checked) >= _MIN_SETS and _memory_used(problem.device) > _MEMORY_SHARE:
                self._notes.append(f"memory: verified on {len(checked)} input sets only")
                break
            try:
                truths = self._truths(candidate)
            except BadProblemError:
                if candidate.own:
                    raise
                continue  # outside what the reference can take
            if truths is None:
                continue
            tensors: list[SharedTensor] = []

            def to_shared(t: torch.Tensor, into: list[SharedTensor] = tensors) -> torch.Tensor:
                into.append(share(t))
                return into[-1].tensor

            inputs = map_tensors(to_shared, candidate.inputs)
            marks = [fingerprint(s.tensor) for s in tensors]
            checked.append(
                CheckedSet(candidate.name, candidate.own, inputs, tensors, marks, truths)
            )
        if not any(s.own for s in checked):
            raise BadProblemError(
                f"{problem.name}.py: the reference in fp32 is too far from its own float64 "
                "run on its own inputs, so nothing can be verified against it"
            )
        return checked

    def _truths(self, given: InputSet) -> list[Truth] | None:
        """Truth and bounds for one input set; None where it gives no basis for a verdict."""
        strict = self._runs.run("fp32", given.inputs)
        values = self._runs.float64(given.inputs)
        if values is None:
            note = "no float64 run of the reference: verified against its strict fp32 run"
            if note not in self._notes:
                self._notes.append(note)
            values = [exact(t) for _, t in strict]
        by_class: list[dict[Precision, Deviation]] = [{} for _ in strict]
        for precision in self._runs.classes:
            outputs = strict if precision == "fp32" else self._runs.run(precision, given.inputs)
            for i, (_, out) in enumerate(outputs):
                by_class[i][precision] = found = deviation(out, values[i])
                if given.own:
                    self.errors[precision] = max(self.errors.get(precision, 0.0), found.norm)
        truths = []
        for (path, out), value, found_in in zip(strict, values, by_class, strict=True):
            first = next(iter(found_in.values()))
            if not first.norm <= _ILL_CONDITIONED:
                return None
            truths.append(Truth(path, value, bounds_from(found_in, out.dtype, _peak(value))))
        return truths


def _peak(value: torch.Tensor) -> float:
    if not value.is_floating_point():
        return 1.0
    finite = value[value.isfinite()]
    if finite.numel() == 0:
        return 1.0
    rms = float(finite.norm()) / finite.numel() ** 0.5
    return float(finite.abs().max()) / rms if rms > 0 else 1.0


def _memory_used(device: str) -> float:
    """The share of a GPU's memory that this process holds tensors in; 0 on the CPU."""
    if device == "cpu":
        return 0.0
    total = torch.cuda.get_device_properties(device).total_memory
    return torch.cuda.memory_allocated(device) / total
