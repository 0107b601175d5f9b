"""The judge's side of a problem: inputs, float64 truth, bounds, and the two baselines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from adaexplore.errors import BadProblemError
from adaexplore.evaluate.clock import Clock, clock_for
from adaexplore.evaluate.compare import Deviation, Truth, bounds_from, deviation, exact
from adaexplore.evaluate.inputs import InputSet, input_sets
from adaexplore.evaluate.precision import baseline_scope, up_to
from adaexplore.evaluate.tensors import SharedTensor, fingerprint, share
from adaexplore.evaluate.widen import widened
from adaexplore.problem import Precision, Problem
from adaexplore.sandbox.instance import (
    Inputs,
    Instance,
    NamedTensor,
    check_outputs,
    flatten_outputs,
    is_out_of_memory,
    map_tensors,
    tensors_of,
)

_MIN_SETS = 3
_MEMORY_SHARE = 0.15  # of the GPU, for inputs and truths; the rest is for running
_RANDOM = 1e-2  # two runs of one reference that differ more than this draw random numbers
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


class Reference:
    """A problem's reference on its device, run once in every precision class and in float64.

    Raises `BadProblemError`, in one line, for a reference that cannot be run or verified against.
    """

    def __init__(self, problem: Problem, folder: Path) -> None:
        self.problem = problem
        self.instance = Instance.load(
            problem.source,
            "Model",
            device=problem.device,
            seed=problem.seed,
            mode=problem.mode,
            folder=folder,
            name=f"{problem.name}.py",
        )
        self.clock: Clock = clock_for(problem.device)
        self.notes: list[str] = []
        self.errors: dict[Precision, float] = {}
        first = self.instance.inputs(problem.seed)
        self.native_half = _is_half(self.instance, first)
        self.precision: Precision = "half" if self.native_half else problem.precision
        self.outputs = self._first_run(first)
        del first  # the device's memory is for the input sets
        self.sets = self._checked_sets()
        self.parameters = {n: share(t) for n, t in self.instance.model.state_dict().items()}
        self.compiled = self._compile()
        self._baselines_us: dict[str, float] = {}

    def baselines(self) -> dict[str, Callable[[int], list[float]]]:
        """What candidates are compared with, by name: how to time a number of calls of each."""
        models = {"eager": self.instance.model} | (
            {"compile": self.compiled} if self.compiled is not None else {}
        )
        return {name: self._block(model) for name, model in models.items()}

    def mend_inputs(self) -> bool:
        """Puts back what a candidate changed in the inputs; true if there was any."""
        changed = {s.name: s for s in self.sets if not s.intact()}
        if changed:
            for original in input_sets(self.instance, self.problem.seed):
                if original.name in changed:
                    changed[original.name].restore(original.inputs)
        return bool(changed)

    def time_baselines(self) -> None:
        """A first look at the baselines, for `facts`; the caller holds the device."""
        blocks = self.baselines()
        rounds = [{name: median(block(3)) for name, block in blocks.items()} for _ in range(5)]
        self._baselines_us = {name: median(r[name] for r in rounds) for name in blocks}

    def facts(self) -> dict[str, Any]:
        """What a report should know about the reference, as plain data."""
        return {
            "precision": self.precision,
            "errors": self.errors,
            "baselines_us": self._baselines_us,
            "input_sets": [s.name for s in self.sets],
            "parameters": sum(p.numel() for p in self.instance.model.parameters()),
            "outputs": [
                {"path": path, "shape": list(t.shape), "dtype": str(t.dtype).partition(".")[2]}
                for path, t in self.outputs
            ],
            "compiles": self.compiled is not None,
            "notes": self.notes,
        }

    def _block(self, model: nn.Module) -> Callable[[int], list[float]]:
        """Times calls of a baseline in the requested class, rotating the problem's own inputs."""
        arguments = [s.inputs for s in self.sets if s.own]

        def call(i: int) -> object:
            inputs = arguments[i % len(arguments)]
            return model(*inputs.args, **inputs.kwargs)

        def block(count: int) -> list[float]:
            with self._scope(self.precision):
                return self.clock.block(call, count)

        return block

    def _scope(self, precision: Precision) -> Any:
        return baseline_scope(precision, self.problem.device, autocast=not self.native_half)

    def _run(
        self, precision: Precision, inputs: Inputs, *, seed_offset: int = 0
    ) -> list[NamedTensor]:
        torch.manual_seed(self.problem.seed + seed_offset)
        with self._scope(precision):
            return self.instance(inputs)

    def _first_run(self, inputs: Inputs) -> list[NamedTensor]:
        """The outputs on the first own inputs, after checking that they can be verified."""
        name = f"{self.problem.name}.py"
        before = [fingerprint(t) for t in tensors_of(inputs)]
        outputs = self._run("fp32", inputs)
        check_outputs(name, outputs)
        if [fingerprint(t) for t in tensors_of(inputs)] != before:
            raise BadProblemError(
                f"{name}: forward() changes its inputs in place; work on a clone inside forward()"
            )
        again = self._run("fp32", inputs, seed_offset=1)
        for (path, first), (_, second) in zip(outputs, again, strict=True):
            difference = deviation(second, exact(first))
            if difference.norm > _RANDOM:
                raise BadProblemError(
                    f"{name}: {path} differs between two runs on the same inputs (dropout in "
                    "training mode, or random numbers in forward()); try --mode eval"
                )
        return outputs

    def _checked_sets(self) -> list[CheckedSet]:
        checked: list[CheckedSet] = []
        for candidate in input_sets(self.instance, self.problem.seed):
            if len(checked) >= _MIN_SETS and _memory_used(self.problem.device) > _MEMORY_SHARE:
                self.notes.append(f"memory: verified on {len(checked)} input sets only")
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
                f"{self.problem.name}.py: the reference in fp32 is too far from its own float64 "
                "run on its own inputs, so nothing can be verified against it"
            )
        return checked

    def _truths(self, given: InputSet) -> list[Truth] | None:
        """Truth and bounds for one input set; None where it gives no basis for a verdict."""
        strict = self._run("fp32", given.inputs)
        values = self._float64(given.inputs)
        if values is None:
            note = "no float64 run of the reference: verified against its strict fp32 run"
            if note not in self.notes:
                self.notes.append(note)
            values = [exact(t) for _, t in strict]
        runs: list[dict[Precision, Deviation]] = [{} for _ in strict]
        for precision in self._classes():
            outputs = strict if precision == "fp32" else self._run(precision, given.inputs)
            for i, (_, out) in enumerate(outputs):
                runs[i][precision] = found = deviation(out, values[i])
                if given.own:
                    self.errors[precision] = max(self.errors.get(precision, 0.0), found.norm)
        truths = []
        for (path, out), value, by_class in zip(strict, values, runs, strict=True):
            first = next(iter(by_class.values()))
            if not first.norm <= _ILL_CONDITIONED:
                return None
            truths.append(Truth(path, value, bounds_from(by_class, out.dtype, _peak(value))))
        return truths

    def _classes(self) -> tuple[Precision, ...]:
        if self.native_half:
            return ("half",)
        # TF32 exists on NVIDIA tensor cores only; on the CPU it would be strict fp32 again.
        every = up_to(self.precision)
        return tuple(p for p in every if p != "tf32" or self.problem.device != "cpu")

    def _float64(self, inputs: Inputs) -> list[torch.Tensor] | None:
        def widen(t: torch.Tensor) -> torch.Tensor:
            if t.is_complex():
                return t.to(torch.complex128)
            return t.double() if t.is_floating_point() else t

        wide = map_tensors(widen, inputs)
        torch.manual_seed(self.problem.seed)
        torch.set_default_dtype(torch.float64)  # for tensors that forward() makes
        try:
            with torch.no_grad(), widened(self.instance.model) as double:
                outputs = flatten_outputs(double(*wide.args, **wide.kwargs))
        except (RuntimeError, TypeError, ValueError, AssertionError) as error:
            if is_out_of_memory(error):
                raise BadProblemError(
                    f"{self.problem.name}.py: its float64 run does not fit on "
                    f"{self.problem.device}; reduce the sizes in the file"
                ) from error
            return None  # an operation without float64, a cast to float32 or a check of the dtype
        finally:
            torch.set_default_dtype(torch.float32)
        return [exact(t) for _, t in outputs]

    def _compile(self) -> nn.Module | None:
        """The reference under `torch.compile`, checked on the first inputs; None if it fails."""
        compiled = torch.compile(self.instance.model)
        first = self.sets[0]
        try:
            with self._scope(self.precision):
                outputs = flatten_outputs(compiled(*first.inputs.args, **first.inputs.kwargs))
        except RuntimeError as error:  # every Dynamo and Inductor failure is one
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self.notes.append(f"torch.compile fails on the reference: {reason}")
            return None
        for (_, out), truth in zip(outputs, first.truths, strict=True):
            if truth.classify(deviation(out, truth.value)) is None:
                self.notes.append("torch.compile gives a wrong result: it is no baseline here")
                return None
        return compiled  # type: ignore[return-value]


def _peak(value: torch.Tensor) -> float:
    if not value.is_floating_point():
        return 1.0
    finite = value[value.isfinite()]
    if finite.numel() == 0:
        return 1.0
    rms = float(finite.norm()) / finite.numel() ** 0.5
    return float(finite.abs().max()) / rms if rms > 0 else 1.0


def _is_half(instance: Instance, inputs: Inputs) -> bool:
    """Whether the reference's own floating-point dtype is fp16 or bf16."""
    floats = [
        t.dtype
        for t in (*instance.model.parameters(), *tensors_of(inputs))
        if t.is_floating_point()
    ]
    return any(torch.finfo(dtype).bits <= 16 for dtype in floats)


def _memory_used(device: str) -> float:
    """The share of a GPU's memory that this process holds tensors in; 0 on the CPU."""
    if device == "cpu":
        return 0.0
    total = torch.cuda.get_device_properties(device).total_memory
    return torch.cuda.memory_allocated(device) / total
