"""The memory that comes with the package: what it says of itself, and whether it is still true."""

import ast
import random
from functools import cache
from importlib.metadata import version
from types import SimpleNamespace

import pytest

from adaexplore.core.problem import Problem
from adaexplore.core.rule import Platform
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.memory.check import Checker
from adaexplore.memory.files import BUNDLED, load_memory, memory_path
from adaexplore.run.learning.rule_checks import check_rules

HERE = Platform(version("triton"), "sm_90")
_SAMPLE = 2


@cache
def rules():
    return load_memory(memory_path(BUNDLED))


def true_here():
    known = [rule for rule in rules() if HERE in (*rule.holds, *rule.gone)]
    if not known:
        pytest.skip(f"nobody has checked it on Triton {HERE.triton} yet")
    return known


def disagreeing(tried, server):
    """The rules of which the evaluator says something else than the file."""

    def judge(name, source):
        problem = Problem(name, source, "triton", "cpu", target="sm_90")
        return OfflineEvaluator(server, problem, timeout_s=120.0, memory_bytes=4 << 30)

    told = []
    bench = SimpleNamespace(platform=HERE, checker=lambda: Checker(judge, HERE))
    check_rules(tried, bench, told.append, parallel=1)
    recorded = {rule.name: HERE in rule.holds for rule in tried}
    return {one.rule.name: one.why for one in told if one.true != recorded[one.rule.name]}


def test_every_rule_holds_somewhere():
    assert len(rules()) >= 80
    assert [rule.name for rule in rules() if not rule.holds] == []


def test_every_rule_has_its_own_name_and_statement():
    for texts in ([rule.name for rule in rules()], [rule.statement for rule in rules()]):
        assert len(texts) == len(set(texts))


def test_every_rule_has_three_programs_and_the_two_candidates_differ():
    for rule in rules():
        assert rule.topics
        assert rule.witness != rule.remedy
        for source, name in (
            (rule.reference, "Model"),
            (rule.witness, "ModelNew"),
            (rule.remedy, "ModelNew"),
        ):
            defined = {n.name for n in ast.parse(source).body if isinstance(n, ast.ClassDef)}
            assert name in defined
        assert len(rule.statement) <= 220
        assert "\n" not in rule.statement


def test_some_of_them_do_what_they_say(server):
    assert disagreeing(random.Random(0).sample(true_here(), _SAMPLE), server) == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_of_them_do_what_they_say(server):
    assert disagreeing(true_here(), server) == {}
