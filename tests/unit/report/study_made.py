"""Hand-made runs of a study."""

from __future__ import annotations

from collections.abc import Mapping

from hand_made import failed, node, passed, run_info
from traced import steps, trace

from adaexplore.core.problem import Problem
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.report import summarize
from adaexplore.report.campaign.summary import result_of, summarize_campaign
from adaexplore.report.study.runs import StudyArmInfo, StudyRun, StudyStep
from adaexplore.report.study.summary import StudySummary, summarize_study

Found = Mapping[tuple[str, str, int], list[float | None]]
"""The speedups of a run's steps by arm, problem and seed; None is a failure."""


def study_run(
    arm: str, problem: str, seed: int, speedups: list[float | None], *, labels=None, made=()
) -> StudyRun:
    """A run whose steps have these speedups; without any, a run that did not begin."""
    name = f"{arm}/{problem}-seed{seed}"
    if not speedups:
        result = result_of(name, "fp32", "cpu", state="refused", reason="no model")
        return StudyRun(arm, problem, seed, result)
    evaluations = [failed() if s is None else passed(s) for s in speedups]
    nodes = [node(i, evaluation) for i, evaluation in enumerate(evaluations, 1)]
    info = run_info(reference=ReferenceFacts(labels=labels or {}))
    summary = summarize(Problem(problem, f"# {problem}", "triton", "cuda"), nodes, info)
    result = result_of(
        name, "fp32", "cpu", state="done", reason="all steps made", folder=name, summary=summary
    )
    found = trace(
        arm, problem, points=steps(*evaluations), claimed=result.timing, labels=labels or {}
    )
    return StudyRun(arm, problem, seed, result, found, made, "rules.json", 3 if made else 0)


def studied(found: Found, labels: Mapping[str, dict] | None = None, made=()) -> StudySummary:
    """The summary of these runs, in the order in which they are given."""
    labels = labels or {}
    runs = [
        study_run(*key, speedups, labels=labels.get(key[1]), made=made)
        for key, speedups in found.items()
    ]
    campaign = summarize_campaign(
        [run.result for run in runs],
        name="night",
        command="adaexplore study arms.toml",
        allocation="uniform",
        budget="",
        wall_s=75.0,
    )
    names = dict.fromkeys(arm for arm, _, _ in found)
    arms = [StudyArmInfo(name, {"policy": name}) for name in names]
    return summarize_study(runs, arms, campaign, lambda _: lambda length: [length])


STEPS = (
    StudyStep("large", True, improved=True, prompted=True, shown=("a", "b"), rule_tokens=90),
    StudyStep("small", True, 0.2, 0.9, True, True, ("a",), ("a", "c"), 30),
    StudyStep("small", False, None, 0.7, False, True, (), ("c",), 0),
    StudyStep("small", True, -0.1, 0.8, False),
)
