"""Trying templates out before a run depends on them."""

from __future__ import annotations

from dataclasses import replace

from adaexplore.core.candidate import Candidate
from adaexplore.core.evaluation import Estimate, Evaluation, Failed, Passed, Timing
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.propose.model.prompts import Prompts, Setting
from adaexplore.propose.model.strategies import CATALOGUE

_FAILED = Failed("runtime_error", "it failed", "and this is its log")


def rehearse(prompts: Prompts, setting: Setting) -> None:
    """Makes every prompt once, with what is known of the run, and kernels made up for it.

    Raises `BadInputError`, with file and line, for a template that asks for what is not there.
    """
    slow, fast = (_node(setting.problem, i, _passed(setting.problem, i)) for i in (1, 2))
    broken = _node(setting.problem, 3, _FAILED)
    pool, window = [slow, fast], [fast, broken]
    prompts.large(setting, [])
    setting = replace(setting, tried=[slow, broken], in_flight=1)
    prompts.large(setting, pool, left_out=1)
    prompts.strategy(setting, pool)
    prompts.large_with_strategy(setting, pool, CATALOGUE[0].name, "a plan")
    prompts.large_with_strategy(setting, pool, "", "a plan", left_out=1)
    prompts.contrastive(setting, fast, slow)
    prompts.reviser(setting, window)
    prompts.tuner(setting, [fast])
    prompts.tuner(setting, window, "advice", left_out=1)
    prompts.repair(setting, broken)
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
