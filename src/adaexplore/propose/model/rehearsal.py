"""A trial of the templates before a run depends on them."""

from __future__ import annotations

from dataclasses import replace

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.proposer import Outline
from adaexplore.core.verdict.evaluation import Estimate, Evaluation, Failed, Passed, Timing
from adaexplore.propose.model.plans import PlanItem
from adaexplore.propose.model.prompts import Briefing, Prompts, Turn

_FAILED = Failed("runtime_error", "it failed", "and this is its log")


def rehearse(prompts: Prompts, briefing: Briefing) -> None:
    """Render every prompt once, with the facts of the run and two invented kernels.

    Raises `BadInputError`, with file and line, for a template that uses a missing attribute.
    """
    slow, fast = (_node(briefing.problem, i, _passed(briefing.problem, i)) for i in (1, 2))
    broken = _node(briefing.problem, 3, _FAILED)
    pool, window = [slow, fast], [fast, broken]
    prompts.large(briefing, [])
    briefing = replace(briefing, tried=[slow, broken], in_flight=2, others=["an idea"])
    prompts.summary(briefing, pool)
    prompts.summary(briefing, window, left_out=1)
    prompts.outlines(briefing, [], 2)
    prompts.outlines(briefing, pool, 2, left_out=1)
    briefing = replace(briefing, summary="a summary")
    prompts.large(briefing, pool, left_out=1)
    outlined = replace(briefing, outline=Outline("a structure", "what it is"))
    prompts.large(outlined, pool)
    prompts.plan(outlined, pool, 2)
    prompts.contrastive(replace(outlined, contrast=pool))
    chosen = Turn(prompts.strategy(briefing, pool), "a strategy")
    prompts.large_with_strategy(briefing, pool, chosen)
    prompts.large_with_strategy(briefing, pool, chosen, left_out=1)
    prompts.plan(briefing, pool, 2, left_out=1)
    plan = Turn(prompts.plan(replace(briefing, contrast=pool), pool, 2), "a plan")
    prompts.first_version(briefing, pool, plan)
    items = [PlanItem(1, "done", "done", [slow]), PlanItem(2, "next", "now", [broken])]
    prompts.item(briefing, [fast], items)
    prompts.contrastive(replace(briefing, contrast=pool))
    prompts.reviser(replace(briefing, contrast=pool), window)
    advice = Turn(prompts.reviser(briefing, window), "advice")
    prompts.tuner(briefing, [fast])
    prompts.tuner(briefing, window, advice)
    prompts.tuner(briefing, window, advice, left_out=1)
    prompts.repair(briefing, broken)
    prompts.again("a reason")
    prompts.cut_off()
    prompts.lint(["a fault"])


def _passed(problem: Problem, speedup: float) -> Passed:
    if problem.target:
        return Passed(problem.precision, 1e-7, Estimate(10.0 / speedup, "memory", problem.target))
    eager = {"eager": 10.0}
    timing = Timing(
        10.0 / speedup, (9.0, 11.0), eager, speedup, (speedup, speedup), speedup, samples=9
    )
    return Passed(problem.precision, 1e-7, timing)


def _node(problem: Problem, step: int, evaluation: Evaluation) -> Node:
    candidate = Candidate(f"class ModelNew:\n    step = {step}\n", problem.language)
    proposal = Proposal(candidate, "model", f"idea {step}")
    return Node(step, step - 1, "small" if step > 1 else "large", proposal, evaluation)
