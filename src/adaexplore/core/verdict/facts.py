"""Facts about a reference, as an evaluator measured them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from adaexplore.core import codec
from adaexplore.core.problem import Precision, TargetName
from adaexplore.core.verdict.evaluation import BoundBy, Estimate


@dataclass(frozen=True, slots=True)
class OutputForm:
    """An output of the reference: its place in the returned value, shape and dtype ("float32")."""

    path: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class InputForm:
    """A captured argument: its name, shape, dtype, strides unless contiguous, and values in words.

    That of a Python number has no shape, and the number's type as `dtype`.
    """

    path: str
    shape: tuple[int, ...] | None
    dtype: str
    strides: tuple[int, ...] = ()
    values: str = ""


@dataclass(frozen=True, slots=True)
class ReferenceRoofline:
    """The least time of the reference's work on the device, and the measured peaks behind it.

    `bytes` is the least traffic of a call and `flops` its operations; `unavoidable_bytes` is the
    part of the traffic that no correct candidate can avoid. `floor_us` is the least time in
    microseconds, `bound_by` the limit that sets it. `bytes_per_s`, `flops_per_s` (by precision
    class) and `overhead_us` (of the smallest kernel) are the device's measured peaks.
    """

    bytes: int
    flops: int
    floor_us: float
    bound_by: BoundBy
    bytes_per_s: float
    flops_per_s: Mapping[Precision, float]
    overhead_us: float
    unavoidable_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ReferenceProducts:
    """The matrix products, convolutions and attention in a call of the reference, on a GPU.

    `flops` are those of all of them. `depth` is the length of the longest chain in which each takes
    a result of the one before, as whole tensors; the steps of an RNN's module count. `step_us` is
    the time that a CUDA graph takes for each of many small kernels, 0 where it was not measured.

    `library_us` is the time that PyTorch's library takes for `timed` products and convolutions,
    which have `timed_flops`: each alone, with operands of the reference's shapes in fp16 ("half")
    or in TF32. It is empty where none was timed.
    """

    flops: int
    depth: int
    step_us: float = 0.0
    timed: int = 0
    timed_flops: int = 0
    library_us: Mapping[Precision, float] = field(default_factory=dict)

    @property
    def chain_us(self) -> float:
        """The time of the longest chain with a launch of a CUDA graph for each product."""
        return self.depth * self.step_us


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """One workload of the reference; `baselines_us` is empty where it is not timed.

    `inputs` are those of a file; others are seen in the source that draws them.
    """

    name: str
    input_sets: tuple[str, ...]
    outputs: tuple[OutputForm, ...]
    inputs: tuple[InputForm, ...] = ()
    baselines_us: Mapping[str, float] = field(default_factory=dict)
    roofline: ReferenceRoofline | None = None


@dataclass(frozen=True, slots=True)
class ReferenceFacts:
    """Facts that `Evaluator.prepare` returns; `ReferenceFacts()` where nothing is known yet.

    `errors` maps a precision class to the relative error of PyTorch's own run in it against
    float64. `bounds` maps an input set to the relative error that is allowed on it in the class
    asked for; the problem's own come first. `baselines_us` holds the times of all baselines,
    `compiles` says whether `torch.compile` works on the reference. `input_sets` names the inputs
    that candidates are verified on, `parameters` counts the model's. `layers` counts its modules
    without modules inside (0 for a target). `labels` maps a label of the problem (see
    `evaluate.truth.labels`) to the reason for it; `notes` are warnings. `took_s` has the seconds of
    each stage of preparing on a GPU, and of all waiting for the device in the judge, which is a
    part of the stages.

    With several workloads, `outputs`, `inputs` and `bounds` are the first one's, `baselines_us` and
    `roofline` are geometric means over the timed ones, `products` are those of the timed one that
    has most of their operations, and `workloads` holds each.

    Without a GPU, `target` names the GPU that kernels are compiled for, `estimate` is the
    reference's own and `variants` maps a smaller problem to the sizes it is verified at.
    """

    precision: Precision = "fp32"
    errors: Mapping[Precision, float] = field(default_factory=dict)
    bounds: Mapping[str, float] = field(default_factory=dict)
    baselines_us: Mapping[str, float] = field(default_factory=dict)
    input_sets: tuple[str, ...] = ()
    parameters: int = 0
    layers: int = 0
    outputs: tuple[OutputForm, ...] = ()
    inputs: tuple[InputForm, ...] = ()
    roofline: ReferenceRoofline | None = None
    products: ReferenceProducts | None = None
    compiles: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    workloads: tuple[WorkloadFacts, ...] = ()
    target: TargetName | None = None
    estimate: Estimate | None = None
    variants: Mapping[str, str] = field(default_factory=dict)
    took_s: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ReferenceFacts:
        """Inverse of `to_json`; a field that is missing has its default."""
        return codec.read(cls, data)
