"""A problem: a reference, the workloads it runs on, and the checks on a candidate."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from adaexplore.core import codec

Language = Literal["triton", "gluon", "cuda", "helion", "cutedsl", "cpp"]
Precision = Literal["fp32", "tf32", "half"]
Mode = Literal["as-built", "train", "eval"]
TargetName = Literal["sm_80", "sm_90", "sm_100"]

LANGUAGES: tuple[Language, ...] = get_args(Language)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)  # strictest first


@dataclass(frozen=True, slots=True)
class Workload:
    """Named inputs of a problem, drawn by the reference's module or read from a file.

    `draw` is an expression over the names of the reference's module, such as `get_inputs()` or
    `get_input_groups()[1]`; it is evaluated under a seed. With `file`, the inputs were captured:
    the path of a file that `torch.load(weights_only=True)` reads as `{"args": list, "kwargs":
    dict}`, and `digest` is the sha256 of its bytes. A candidate must be right on every workload;
    its time counts on those that are `timed`.
    """

    name: str = "inputs"
    draw: str = "get_inputs()"
    file: str = ""
    digest: str = ""
    timed: bool = True

    @property
    def identity(self) -> tuple[str, ...]:
        """The parts that decide a verdict: for captured inputs the content, not its place."""
        return (self.name, self.digest if self.file else self.draw, str(self.timed))


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An element-wise bound of a benchmark: |out - expected| <= atol + rtol |expected|.

    It holds for the share `matched` of the elements at least. `source` names who prescribes it. It
    is for the workload of that name, or for all.
    """

    rtol: float
    atol: float
    source: str
    matched: float = 1.0
    workload: str = ""


@dataclass(frozen=True, slots=True)
class Likeness:
    """A bound of a benchmark on an output as a whole, beside the reference's.

    The cosine of the two is `cosine` at least, the sum of the differences `l1` of that of the
    reference's elements at most, and the root of the mean squared difference `rmse` at most.
    `source` names who prescribes it.
    """

    cosine: float
    l1: float
    rmse: float
    source: str


@dataclass(frozen=True, slots=True)
class Checks:
    """The conditions on a candidate.

    `precision` is the loosest class allowed. With `require_custom`, a candidate whose own kernels
    do not do the work is no result. `tolerances` and `likenesses` are judged beside the precision
    class: a candidate must meet all. With `allow_waiting`, kernels whose blocks wait for other
    blocks of a launch that is not cooperative may be claimed; that decides no verdict. With
    `backward`, a call is a training step: forward, and the gradients of inputs and parameters.
    """

    precision: Precision = "fp32"
    require_custom: bool = False
    tolerances: tuple[Tolerance, ...] = ()
    likenesses: tuple[Likeness, ...] = ()
    allow_waiting: bool = False
    backward: bool = False

    @property
    def prescribes(self) -> bool:
        """Whether a benchmark's own bounds are judged beside the precision class."""
        return bool(self.tolerances or self.likenesses)


@dataclass(frozen=True, slots=True)
class Access:
    """The files of the user that a reference needs, and its candidates with it.

    The source runs as `file` (its `__file__`), empty for source without a file. `imports` are
    folders that are put on `sys.path`. Candidates may read `reads`, further files and folders, and
    the files of `modules`: name and file of each module that the reference imports from the user's
    folders (for a package without `__init__.py` its folder, with a slash behind, which nobody
    reads). Candidates may list or read nothing else of the user's. `digest` is the sha256 of the
    content of all these files.
    """

    file: str = ""
    imports: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    modules: tuple[tuple[str, str], ...] = ()
    digest: str = ""

    @property
    def readable(self) -> tuple[str, ...]:
        """The files and folders that a candidate's process may read."""
        return (*self.reads, *(file for _, file in self.modules if not file.endswith("/")))


@dataclass(frozen=True, slots=True)
class Problem:
    """A PyTorch reference, the workloads it runs on, and the checks on a candidate.

    `source` defines `Model`, the functions that `workloads` call and optionally
    `get_init_inputs()`. `device` is `"cpu"` or `"cuda:<index>"`. `seed` fixes weights and inputs.
    `mode` says whether the reference runs as its constructor leaves it (KernelBench's habit, which
    is training mode), or is put into train or eval mode first. `target` is set on the CPU only: the
    GPU that kernels are compiled for where there is none to measure on. `weights` is the path of a
    state dict that the reference loads, empty where its constructor makes them; `weights_digest` is
    the sha256 of that file's bytes. `labels` are given with the problem, name and reason; the judge
    adds those that it finds.
    """

    name: str
    source: str
    language: Language
    device: str
    workloads: tuple[Workload, ...] = (Workload(),)
    checks: Checks = Checks()
    seed: int = 0
    mode: Mode = "as-built"
    target: TargetName | None = None
    access: Access = Access()
    weights: str = ""
    weights_digest: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def precision(self) -> Precision:
        """The loosest precision class that a candidate may have."""
        return self.checks.precision

    @property
    def is_shared(self) -> bool:
        """Whether one kernel on a GPU serves several modules of a model, each with its weights.

        A training step is asked for more: it follows its weights, and is captured in no graph.
        """
        return bool(self.weights) and self.device != "cpu" and not self.checks.backward

    @property
    def timed_workloads(self) -> tuple[Workload, ...]:
        """The workloads whose time counts: those that are `timed`, or else the first."""
        return tuple(each for each in self.workloads if each.timed) or self.workloads[:1]

    @property
    def digest(self) -> str:
        """Content hash of everything that decides a verdict."""
        parts = [self.source, self.language, str(self.seed), self.mode]
        parts += [self.target] if self.target else []
        checks = {k: v for k, v in asdict(self.checks).items() if k != "allow_waiting"}
        for name in ("likenesses", "backward"):  # none of them decides nothing
            if not checks[name]:
                del checks[name]
        parts += [json.dumps([checks, *(one.identity for one in self.workloads)])]
        parts += [self.weights_digest, self.access.digest]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Problem:
        """Inverse of `to_json`."""
        return codec.read(Problem, data)
