"""Speed rules on the command line, on a machine that cannot time them."""

import dataclasses
from types import SimpleNamespace

import pytest
from adaexplore_lab.probes.speed import SPEED
from rich.console import Console

from adaexplore.cli.adapt import tried
from adaexplore.core.evaluation import Estimate, Passed
from adaexplore.core.rule import Gain, Platform, Signature
from adaexplore.memory.check import Checked
from adaexplore.memory.files import load, save
from adaexplore.run import check_rules as adapt

TARGET = ("--device", "cpu", "--target", "sm_90")
H200 = Platform("3.9.0", "sm_90", "NVIDIA H200")
RULE = dataclasses.replace(
    SPEED[0].rule(),
    signature=Signature("slow"),
    holds=(H200,),
    gains=(Gain(H200, 3.456, (3.4, 3.5)),),
)


@pytest.fixture
def memory(tmp_path):
    path = tmp_path / "speed.toml"
    save(path, [RULE])
    return path


@pytest.fixture
def attempted(monkeypatch):
    """The rules that were tried, each with two right programs."""
    tried = []

    def attempt(rules, new_checker, tell, parallel):
        tried.extend(rules)
        for rule in rules:
            right = Passed("fp32", 0.0, Estimate(1.0, "memory", "sm_90"))
            tell(Checked(rule, right, right, False, "not measurable here"))

    monkeypatch.setattr(adapt, "probe", attempt)
    monkeypatch.setattr(adapt, "check", attempt)
    return tried


def test_the_kinds_to_probe_are_chosen(adaexplore, attempted, tmp_path):
    out = tmp_path / "out.toml"
    took = adaexplore("adapt", "--probe", "--kind", "speed", "-o", out, *TARGET)
    assert took.code == 0
    assert {rule.kind for rule in attempted} == {"speed"}
    assert f"{len(SPEED)} of kind speed have two right programs" in took.out
    assert "0 of 0 probes are rules" in took.out
    assert not out.exists()


def test_without_a_gpu_they_are_left_out_unless_asked_for(adaexplore, attempted, tmp_path):
    adaexplore("adapt", "--probe", "-o", tmp_path / "out.toml", *TARGET)
    assert {"compile", "silent"} <= {rule.kind for rule in attempted}
    assert "speed" not in {rule.kind for rule in attempted}


def test_a_kind_that_is_none(adaexplore):
    refused = adaexplore("adapt", "--probe", "--kind", "speed,odd", *TARGET)
    assert "--kind speed,odd: 'odd' is none of compile, launch" in refused.complaint


def test_a_check_without_a_gpu_leaves_them_as_they_are(adaexplore, attempted, memory):
    took = adaexplore("memory", "check", memory, *TARGET)
    assert took.code == 0
    assert "1 of kind speed have two right programs" in took.out
    assert "0 of 0 rules hold" in took.out
    assert load(memory) == [RULE]


def test_what_was_gained_is_shown(adaexplore, memory):
    shown = adaexplore("memory", "show", RULE.name, memory)
    assert "holds on: Triton 3.9.0 (sm_90, NVIDIA H200)" in shown.out
    assert "3.46x (3.4 to 3.5) on Triton 3.9.0 for sm_90 NVIDIA H200" in shown.out
    assert "(3.46x)" in "".join(adaexplore("memory", "list", memory).out.split("\n"))


def test_on_a_gpu_they_are_timed_one_by_one_after_the_others():
    calls = []

    def attempt(rules, new_checker, tell, parallel):
        calls.append(([rule.name for rule in rules], parallel))

    place = SimpleNamespace(where=H200, checker=None)
    other = dataclasses.replace(RULE, name="other", kind="silent")
    tried(Console(), attempt, [RULE, other], place, 5)
    assert calls == [(["other"], 5), ([RULE.name], 1)]
