"""Rule candidates and beliefs: what their files hold, and the verdicts on their programs."""

from importlib.metadata import version

import pytest

from adaexplore.core.problem import Problem
from adaexplore.core.rule import Platform
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.memory.check import Checker
from adaexplore.memory.files import BUNDLED, beliefs, load_memory, memory_path
from adaexplore.memory.unchecked.statements import wordings
from adaexplore.memory.unchecked.wording import objection
from adaexplore_lab.rules import candidates

RULES = load_memory(memory_path(BUNDLED))
SPEED = [rule for rule in (*RULES, *candidates()) if rule.kind == "speed"]
QUICK = ("counts-in-blocks-before-atomics",)


def objections(rules, server):
    """Return what is wrong with the speed rules whose programs are not both right."""

    def judge(name, source):
        problem = Problem(name, source, "triton", "cpu", target="sm_90")
        return OfflineEvaluator(server, problem, timeout_s=120.0, memory_bytes=4 << 30)

    checker = Checker(judge, Platform(version("triton"), "sm_90"))
    checked = [checker.observe(rule) for rule in sorted(rules, key=lambda rule: rule.reference)]
    checker.close()
    return {one.rule.name: one.why for one in checked if not one.untimed}


def test_every_rule_has_one_home():
    names = [rule.name for rule in (*RULES, *candidates(), *beliefs())]
    assert len(names) == len(set(names))
    assert set(wordings()) <= set(names)


def test_a_candidate_holds_nowhere_yet():
    assert [rule.name for rule in (*candidates(), *beliefs()) if rule.holds] == []


@pytest.mark.slow
def test_a_speed_rule_with_right_programs_is_untimed_without_a_gpu(server):
    assert objections([rule for rule in SPEED if rule.name in QUICK], server) == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_both_programs_of_every_speed_rule_are_right(server):
    assert objections(SPEED, server) == {}


@pytest.mark.parametrize("rule", SPEED, ids=lambda rule: rule.name)
def test_a_speed_statement_says_what_to_do_and_no_figure_of_one_gpu(rule):
    assert rule.statement.endswith(".")
    assert "HOLE" not in rule.witness + rule.remedy
    assert "times faster" not in rule.statement
    assert rule.topics
    assert objection(rule.statement, rule.reference, rule.witness, rule.remedy) == ""
