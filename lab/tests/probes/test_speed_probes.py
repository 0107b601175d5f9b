"""The speed probes: that both programs of each are right. What they gain takes a GPU to say."""

from importlib.metadata import version

import pytest

from adaexplore.core.problem import Problem
from adaexplore.core.rule import Platform
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.memory.check import Checker
from adaexplore_lab.probes.speed import SPEED

QUICK = ("counts-in-blocks-before-atomics",)


def objections(probes, server):
    """What is wrong with those of which not both programs are right."""

    def judge(name, source):
        problem = Problem(name, source, "triton", "cpu", target="sm_90")
        return OfflineEvaluator(server, problem, timeout_s=120.0, memory_bytes=4 << 30)

    checker = Checker(judge, Platform(version("triton"), "sm_90"))
    rules = sorted((probe.rule() for probe in probes), key=lambda rule: rule.reference)
    checked = [checker.observe(rule) for rule in rules]
    checker.close()
    return {one.rule.name: one.why for one in checked if not one.untimed}


def test_some_are_right(server):
    assert objections([probe for probe in SPEED if probe.name in QUICK], server) == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_are_right(server):
    assert objections(SPEED, server) == {}


@pytest.mark.parametrize("probe", SPEED, ids=lambda probe: probe.name)
def test_a_statement_says_what_to_do_and_no_figure_of_one_gpu(probe):
    assert probe.kind == "speed"
    assert probe.statement.endswith(".")
    assert "HOLE" not in probe.witness + probe.remedy
    assert "times faster" not in probe.statement
