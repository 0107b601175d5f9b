"""Hand-made runs for the tests of comparisons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hand_made import PROBLEM, node, passed

from adaexplore.core.verdict.evaluation import Evaluation
from adaexplore.report.compare.arms import make_arms
from adaexplore.report.compare.comparison import Comparison
from adaexplore.report.compare.compute import compare
from adaexplore.report.compare.traces import RunTrace, points
from adaexplore.report.run.diversity import DiversityPoint


def steps(*evaluations: Evaluation, spent=None, **changes: Any):
    """The points of steps that began one after the other, each taking what it takes."""
    nodes, at = [], 1000.0
    for number, evaluation in enumerate(evaluations, 1):
        nodes.append(node(number, evaluation, started_at=at, **changes))
        at += 0.5 + evaluation.cost.wall_s
    spread = [DiversityPoint(1, 1, None)] * len(nodes)
    return points(nodes, spent or [(0.0, 0)] * len(nodes), spread)


def trace(policy: str, problem: str, *evaluations: Evaluation, **changes: Any) -> RunTrace:
    made = steps(*evaluations)
    facts = {
        "path": f"runs/{policy}/{problem}",
        "problem": replace(PROBLEM, name=problem, source=f"# {problem}", language="triton"),
        "facets": {"policy": policy, "c": 0.3, "seed": 0, "commit": "a"},
        "environment": "a GPU, torch 2.11.0",
        "labels": {},
        "points": made,
        "claimed": next((p.timing for p in reversed(made) if p.timing), None),
    }
    return RunTrace(**{**facts, **changes})


def reaching(policy: str, problem: str, *speedups: float, **changes: Any) -> RunTrace:
    """A run that found these speedups, one a step."""
    return trace(policy, problem, *map(passed, speedups), **changes)


def compared(*traces: RunTrace, at=(), by=(), axis="steps") -> Comparison:
    arms, notes = make_arms(traces, by)
    return compare(arms, axis, lambda length: [length], at=at, notes=notes)
