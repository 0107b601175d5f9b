"""A problem with what a run knows of it, and kernels as a search finds them."""

from __future__ import annotations

from typing import Any

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Checks, Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.verdict.evaluation import (
    Estimate,
    Evaluation,
    Failed,
    Fault,
    Passed,
    Roofline,
    Timing,
)
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.propose.model.prompts import Briefing

REFERENCE = '''"""A product with a ``` in its words."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.relu(a @ b)
'''
H200 = {
    "device": "cuda:0",
    "cpu": "Some CPU",
    "torch": "2.11.0+cu130",
    "triton": "3.6.0",
    "gpu": "NVIDIA H200",
    "gpu_memory_gib": 139.8,
    "compute_capability": "9.0",
    "multiprocessors": 132,
    "l2_bytes": 60 << 20,
}
CPU = {"device": "cpu", "cpu": "Some CPU", "cores": 8, "threads": 4}
FACTS: dict[str, Any] = {
    "errors": {"fp32": 1.6e-6, "tf32": 2.9e-4},
    "baselines_us": {"eager": 577.0, "compile": 571.0},
    "outputs": [{"path": "output", "shape": [64, 96], "dtype": "float32"}],
    "roofline": {
        "bytes": 400_000_000,
        "flops": 2_000_000_000,
        "floor_us": 100.0,
        "bound_by": "memory",
        "bytes_per_s": 4.0e12,
        "flops_per_s": {"fp32": 5.1e13, "tf32": 3.8e14},
        "overhead_us": 2.1,
    },
    "products": {
        "flops": 2_000_000_000,
        "depth": 2,
        "step_us": 1.5,
        "timed": 2,
        "timed_flops": 1_980_000_000,
        "library_us": {"half": 40.0, "tf32": 75.0},
    },
    "labels": {},
}
TIMING = Timing(312.0, (310.0, 314.0), FACTS["baselines_us"], 1.83, (1.8, 1.86), 1.85, 90)
PASSED = Passed("fp32", 3.1e-7, TIMING, roofline=Roofline(100.0, "memory", 0.32, 1.3e12, 6.4e12))
ESTIMATED = Passed("fp32", 3.1e-7, Estimate(90.0, "memory", "sm_90"), detail="9 registers")
FAULT = Fault("CompilationError", "power of 2", 12, "i = tl.arange(0, 100)", "kernel_3")
FAILED = Failed("compile_error", "CompilationError: power of 2", "the whole log", feedback=FAULT)


def briefing(**changes: Any) -> Briefing:
    """On an H200, unless the environment says otherwise; other changes are the problem's."""
    own = ("rules", "demand")
    kept = {name: changes.pop(name) for name in own if name in changes}
    facts = {**FACTS, **changes.pop("facts", {})}
    environment = changes.pop("environment", H200)
    checks = Checks(changes.pop("precision", "fp32"))
    problem = {"language": "triton", "device": environment["device"], "checks": checks, **changes}
    return Briefing(
        Problem("relu_of_product", REFERENCE, **problem),
        ReferenceFacts.from_json(facts),
        Environment.from_json(environment),
        **kept,
    )


def module(step: int) -> str:
    """A source of some length; those of neighbouring steps differ in one line."""
    lines = [f"    x = x + {i}  # line {i}" for i in range(40)]
    lines[20] = f"    x = x * {step}  # made in step {step}"
    return "\n".join(["class ModelNew:", "  def forward(self, x):", *lines, "    return x\n"])


def node(
    step: int,
    evaluation: Evaluation = PASSED,
    *,
    source: str | None = None,
    origin: str = "model",
    note: str = "",
) -> Node:
    candidate = Candidate(module(step) if source is None else source, "triton")
    proposal = Proposal(candidate, origin, note or f"idea {step}")
    return Node(step, step - 1, "small", proposal, evaluation)


def text(prompt) -> str:
    """All that the model is told."""
    return "\n\n".join(message.text for message in prompt.messages)
