"""A kernel to be handed to a benchmark, and the files that this made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adaexplore.core.environment import Environment
from adaexplore.core.problem import Language, Mode, Workload
from adaexplore.core.verdict.evaluation import Evaluation
from adaexplore.problems.solutions.specification import Specification

AUTHOR = "adaexplore"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The source of a kernel (`ModelNew`), and the verdict on it: None where nobody judged it.

    `judged` are the workloads of the verdict. `environment` is its place, and `at` its time in
    seconds since the epoch. `about` is the claim in one line, and
    `labels` are those of the problem, each with its reason.
    """

    specification: Specification
    source: str
    language: Language
    mode: Mode = "as-built"
    verdict: Evaluation | None = None
    judged: tuple[Workload, ...] = ()
    environment: Environment = field(default_factory=Environment)
    at: float = 0.0
    about: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the solution: another source has another name."""
        digest = hashlib.sha256(self.source.encode()).hexdigest()
        return f"{AUTHOR}_{self.specification.name}_{digest[:8]}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A workload without a trace, and why it has none."""

    workload: str
    reason: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """The files of a delivery: `written` first, and what they leave out.

    `traces` counts the traces. `data_missing` are the files of tensors that workloads name and the
    folder does not have.
    """

    written: tuple[Path, ...]
    traces: int
    left_out: tuple[LeftOut, ...] = ()
    data_missing: tuple[str, ...] = ()
