"""Hand-made steps and runs for the report's tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from adaexplore.core.ask import Exchange
from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Message, Prompt, Reply, Usage
from adaexplore.core.verdict.evaluation import (
    Cost,
    Estimate,
    Evaluation,
    Failed,
    Passed,
    Timing,
    WorkloadTiming,
)
from adaexplore.report import RunInfo

PROBLEM = Problem("softmax", "class Model: ...\n", "cpp", "cpu")


def passed(
    speedup: float, spread: float = 0.02, baselines: dict[str, float] | None = None
) -> Passed:
    baselines = baselines or {"eager": 900.0, "compile": 720.0}
    time_us = min(baselines.values()) / speedup
    timing = Timing(
        time_us=time_us,
        time_ci_us=(time_us * 0.99, time_us * 1.01),
        baselines_us=baselines,
        speedup=speedup,
        speedup_ci=(speedup * (1 - spread), speedup * (1 + spread)),
        speedup_eager=baselines["eager"] / time_us,
        samples=100,
    )
    return Passed("fp32", 1.2e-7, timing, Cost(wall_s=3.0, device_s=1.0))


def under_load(speedup: float) -> Passed:
    """Return a candidate that was timed while other programs kept processors busy."""
    found = passed(speedup)
    assert found.measured
    return replace(found, timing=replace(found.measured, waited=0.2))


def on_two_workloads() -> Passed:
    """Return a candidate timed on two workloads, 1.5x in the geometric mean."""
    timings = {name: passed(speedup).measured for name, speedup in (("short", 1.0), ("long", 2.25))}
    workloads = tuple(WorkloadTiming(name, timing) for name, timing in timings.items() if timing)
    return replace(passed(1.5), workloads=workloads)


def estimated(time_us: float = 12.0) -> Passed:
    return Passed("fp32", 1.2e-7, Estimate(time_us, "memory", "sm_90"))


def failed(status: Any = "compile_error", reason: str = "no such name: tmp0") -> Failed:
    return Failed(status, reason, cost=Cost(wall_s=2.0, device_s=0.5))


def node(node_id: int, evaluation: Evaluation, parent_id: int = 0, **changes: Any) -> Node:
    proposal = {
        "candidate": Candidate(changes.pop("source", f"value = {node_id}\n"), "cpp"),
        "origin": changes.pop("origin", "compiler"),
        "note": changes.pop("note", "fold the constants"),
        "settings": changes.pop("settings", {"family": "fold"}),
        "prompt": changes.pop("prompt", ""),
    }
    step = {"step_kind": "small" if parent_id else "large", "propose_s": 0.5, **changes}
    return Node(node_id, parent_id, proposal=Proposal(**proposal), evaluation=evaluation, **step)


def call(
    ask_id: int, model: str = "some:model", cost_usd: float | None = None, **changes: Any
) -> Exchange:
    """Of 100 tokens in and 20 out, in 2 s."""
    reply = {"text": "Done.", "usage": Usage(100, 20, 40, cost_usd), "latency_s": 2.0, **changes}
    prompt = Prompt((Message("user", "Faster!"),), "large")
    return Exchange(ask_id, prompt, Reply(model=model, **reply), 0.0)


def run_info(**changes: Any) -> RunInfo:
    facts = {"name": "night", "directory": "runs/night", "seed": 0, "proposer": "compiler"}
    return RunInfo(**{**facts, "planned_steps": 20, **changes})
