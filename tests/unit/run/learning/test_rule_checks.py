"""Checking many rules at once, with judges that know their verdicts."""

import dataclasses
from types import SimpleNamespace

import pytest
from test_memory_files import RULE

from adaexplore.core.errors import InfrastructureError
from adaexplore.core.rule import Platform, Signature
from adaexplore.core.verdict.evaluation import Estimate, Failed, Fault, Passed
from adaexplore.memory.check import Checker
from adaexplore.run.learning.rule_checks import check_rules

HERE = Platform("9.9.9", "sm_90")
ON_GPU = Platform("9.9.9", "sm_90", "NVIDIA H200")
PASSED = Passed("fp32", 0.0, Estimate(1.0, "memory", "sm_90"))
BROKEN = Failed("compile_error", "no", feedback=Fault("TypeError", "no ** at 7:3", 7))
BASE = dataclasses.replace(RULE, holds=(), gone=(), signature=Signature("compile_error"))
RULES = tuple(
    dataclasses.replace(BASE, name=f"r{i}", reference=f"class Model: n = {i // 20}")
    for i in range(50)
)


class Judge:
    def prepare(self):
        return {}

    def evaluate(self, candidate, parent=None, *, again=False):
        return {BASE.witness: BROKEN, BASE.remedy: PASSED}[candidate.source]

    def close(self):
        pass


@pytest.fixture
def bench():
    """A machine that counts its checkers."""
    made, closed = [], []

    def checker():
        made.append(1)
        return Checker(lambda name, source: Judge(), HERE, lambda: closed.append(1))

    return SimpleNamespace(platform=HERE, checker=checker, made=made, closed=closed)


@pytest.mark.parametrize("parallel", [1, 3, 100])
def test_every_rule_is_checked_once_and_every_checker_closed(bench, parallel):
    checked = []
    check_rules(RULES, bench, checked.append, parallel=parallel)
    assert sorted(each.rule.name for each in checked) == sorted(rule.name for rule in RULES)
    assert len(bench.closed) == len(bench.made) <= parallel


@pytest.mark.parametrize("end", [KeyboardInterrupt, InfrastructureError("gone")])
def test_results_before_an_exception_are_kept(bench, end):
    checked = []

    def report(result):
        if len(checked) == 7:
            raise end
        checked.append(result)

    with pytest.raises((KeyboardInterrupt, InfrastructureError)):
        check_rules(RULES, bench, report, parallel=1)
    assert len(checked) == 7


def test_an_observed_rule_gets_the_signature_of_its_witness(bench):
    checked = []
    unknown = dataclasses.replace(BASE, signature=Signature("runtime_error"))
    check_rules([unknown], bench, checked.append, observe=True)
    [result] = checked
    assert result.true
    assert result.rule.signature.type == "TypeError"


def test_speed_rules_are_timed_after_the_others_and_one_at_a_time_on_a_gpu(bench):
    bench.platform = ON_GPU
    speed = [
        dataclasses.replace(BASE, name=f"fast{i}", kind="speed", reference=f"class Model: n = {i}")
        for i in range(3)
    ]
    checked = []
    check_rules([*speed, *RULES], bench, checked.append, parallel=2)
    assert {each.rule.kind for each in checked[-3:]} == {"speed"}
    assert len(bench.made) == 2 + 1
