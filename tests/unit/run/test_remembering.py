"""Evaluations that runs share."""

from dataclasses import replace

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.config import Config
from adaexplore.core.environment import Environment
from adaexplore.core.evaluation import Cost, Failed, Paired, Passed, Timing
from adaexplore.core.problem import Checks, Problem, Workload
from adaexplore.run.remembering import RememberingEvaluator, deciding, lasts
from adaexplore.store.evaluations import SharedEvaluations

PARENT = Paired(9.0, 1.1, (1.0, 1.2))
TIMING = Timing(10.0, (9.0, 11.0), {"eager": 20.0}, 2.0, (1.9, 2.1), 2.0, 7, PARENT)
PASSED = Passed("fp32", 1e-7, TIMING, Cost(3.0, 1.0))
CANDIDATE = Candidate("class ModelNew: ...", "cpp")
PROBLEM = Problem("softmax", "class Model: ...", "triton", "cuda:0", checks=Checks("tf32"))
ENVIRONMENT = Environment("cuda:0", "Xeon", 16, torch="2.11", triton="3.6", gpu="NVIDIA H200")


class Judge:
    """An evaluator that counts, and gives one verdict."""

    def __init__(self, verdict=PASSED):
        self.verdict, self.asked = verdict, []

    def prepare(self):
        return "facts"

    def evaluate(self, candidate, parent=None, *, again=False):
        self.asked.append((candidate, parent, again))
        return self.verdict

    def close(self):
        pass


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "shared.db")


def remembering(judge, place, decides="all that decides"):
    return RememberingEvaluator(judge, SharedEvaluations(place), decides, "NVIDIA H200")


def test_a_second_run_takes_the_evaluation_over_and_says_so(place):
    first, second = Judge(), Judge()
    assert remembering(first, place).evaluate(CANDIDATE) == PASSED
    found = remembering(second, place).evaluate(CANDIDATE, Candidate("parent", "cpp"))
    assert second.asked == []
    assert "taken over from an evaluation of 20" in found.detail
    assert "NVIDIA H200" in found.detail
    assert replace(found, detail="") == replace(
        PASSED, cost=Cost(), timing=replace(TIMING, parent=None)
    )


def test_another_candidate_or_another_key_is_judged(place):
    remembering(Judge(), place).evaluate(CANDIDATE)
    judge = Judge()
    remembering(judge, place).evaluate(Candidate("class ModelNew: other", "cpp"))
    remembering(judge, place, "something else").evaluate(CANDIDATE)
    assert len(judge.asked) == 2


def test_a_confirmation_is_measured_and_not_kept(place):
    judge = Judge()
    evaluator = remembering(judge, place)
    evaluator.evaluate(CANDIDATE)
    assert evaluator.evaluate(CANDIDATE, again=True) == PASSED
    assert [again for _, _, again in judge.asked] == [False, True]
    other = Judge()
    remembering(other, place).evaluate(Candidate("confirmed alone", "cpp"), again=True)
    remembering(other, place).evaluate(Candidate("confirmed alone", "cpp"))
    assert len(other.asked) == 2


WIDE = replace(TIMING, speedup_ci=(1.0, 3.0))


@pytest.mark.parametrize(
    ("evaluation", "kept"),
    [
        (PASSED, True),
        (replace(PASSED, timing=WIDE), False),
        (replace(PASSED, timing=replace(TIMING, waited=0.1)), False),
        (Failed("wrong_output", "off by one"), True),
        (Failed("compile_error", "no"), True),
        (Failed("rejected", "it caches"), True),
        (Failed("infra_error", "no GPU"), False),
        (Failed("timeout", "too slow"), False),
        (Failed("out_of_memory", "too large"), False),
        (Failed("reported", "by others"), False),
    ],
)
def test_what_the_machine_may_have_caused_is_not_kept(place, evaluation, kept):
    assert lasts(evaluation) == kept
    remembering(Judge(evaluation), place).evaluate(CANDIDATE)
    judge = Judge()
    found = remembering(judge, place).evaluate(CANDIDATE)
    assert (judge.asked == []) == kept
    assert found.status == (evaluation.status if kept else "passed")


CHANGES = {
    "source": (replace(PROBLEM, source="class Model: other"), Config(), ENVIRONMENT),
    "language": (replace(PROBLEM, language="cuda"), Config(), ENVIRONMENT),
    "mode": (replace(PROBLEM, mode="train"), Config(), ENVIRONMENT),
    "seed": (replace(PROBLEM, seed=7), Config(), ENVIRONMENT),
    "workloads": (replace(PROBLEM, workloads=(Workload("b", "draw()"),)), Config(), ENVIRONMENT),
    "precision": (replace(PROBLEM, checks=Checks("half")), Config(), ENVIRONMENT),
    "waiting": (
        replace(PROBLEM, checks=Checks("tf32", allow_waiting=True)),
        Config(),
        ENVIRONMENT,
    ),
    "weights": (replace(PROBLEM, weights_digest="other"), Config(), ENVIRONMENT),
    "timeout": (PROBLEM, Config(timeout_s=5.0), ENVIRONMENT),
    "memory": (PROBLEM, Config(memory_gb=2.0), ENVIRONMENT),
    **{
        name: (PROBLEM, Config(), replace(ENVIRONMENT, **{name: "other"}))
        for name in ("gpu", "torch", "triton", "cuda", "driver", "nvcc", "commit", "python")
    },
    "kind": (replace(PROBLEM, device="cpu"), Config(), ENVIRONMENT),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_that_may_decide_is_another_key(change):
    assert deciding(*CHANGES[change]) != deciding(PROBLEM, Config(), ENVIRONMENT)


def test_names_other_gpus_and_other_hosts_are_the_same_key():
    same = deciding(
        replace(PROBLEM, name="other", device="cuda:3"),
        Config(steps=7, run="elsewhere"),
        replace(ENVIRONMENT, device="cuda:3", cpu="EPYC", cores=64),
    )
    assert same == deciding(PROBLEM, Config(), ENVIRONMENT)


def test_on_the_cpu_the_host_counts():
    problem, environment = replace(PROBLEM, device="cpu"), replace(ENVIRONMENT, device="cpu")
    other = replace(environment, cpu="EPYC")
    assert deciding(problem, Config(), other) != deciding(problem, Config(), environment)
