"""Speed rules on the command line, on a machine that cannot time them."""

import dataclasses

import pytest

from adaexplore.cli.learning import checking
from adaexplore.core.rule import Gain, Platform, Signature
from adaexplore.core.verdict.evaluation import Estimate, Passed
from adaexplore.memory.check import CheckedRule
from adaexplore.memory.files import BUNDLED, load_memory, memory_path, save_memory

TARGET = ("--device", "cpu", "--target", "sm_90")
H200 = Platform("3.9.0", "sm_90", "NVIDIA H200")
RULE = dataclasses.replace(
    next(rule for rule in load_memory(memory_path(BUNDLED)) if rule.kind == "speed"),
    signature=Signature("slow"),
    holds=(H200,),
    gains=(Gain(H200, 3.456, (3.4, 3.5)),),
)


@pytest.fixture
def memory(tmp_path):
    path = tmp_path / "speed.toml"
    save_memory(path, [RULE])
    return path


@pytest.fixture
def attempted(monkeypatch):
    """The rules that were checked, each with two correct programs."""
    attempted = []

    def attempt(rules, machine, report, **options):
        attempted.extend(rules)
        for rule in rules:
            right = Passed("fp32", 0.0, Estimate(1.0, "memory", "sm_90"))
            report(CheckedRule(rule, right, right, False, "not measurable here"))

    monkeypatch.setattr(checking, "check_rules", attempt)
    return attempted


def test_a_check_without_a_gpu_leaves_them_as_they_are(adaexplore, attempted, memory):
    took = adaexplore("memory", "check", memory, *TARGET)
    assert took.code == 0
    assert "1 of kind speed have two right programs" in took.out
    assert "0 of 0 rules hold" in took.out
    assert load_memory(memory) == [RULE]


def test_what_was_gained_is_shown(adaexplore, memory):
    shown = adaexplore("memory", "show", RULE.name, memory)
    assert "holds on: Triton 3.9.0 (sm_90, NVIDIA H200)" in shown.out
    assert "3.46x (3.4 to 3.5) on Triton 3.9.0 for sm_90 NVIDIA H200" in shown.out
    assert "(3.46x)" in "".join(adaexplore("memory", "list", memory).out.split("\n"))
