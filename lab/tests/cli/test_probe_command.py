"""The command probe, on a machine that cannot time speed rules."""

import dataclasses

import pytest

from adaexplore.core import Estimate, Failed, Passed, Platform
from adaexplore.memory import BUNDLED, CheckedRule, load_memory, memory_path
from adaexplore_lab import console
from adaexplore_lab.rules import candidates

TARGET = ("--device", "cpu", "--target", "sm_90")
RULES = [*load_memory(memory_path(BUNDLED)), *candidates()]
SPEED = [rule for rule in RULES if rule.kind == "speed"]
RIGHT = Passed("fp32", 0.0, Estimate(1.0, "memory", "sm_90"))


@pytest.fixture
def attempted(monkeypatch):
    """The rules that were tried, each with two correct programs."""
    attempted = []

    def attempt(rules, machine, report, **options):
        assert options["observe"]
        attempted.extend(rules)
        for rule in rules:
            report(CheckedRule(rule, RIGHT, RIGHT, False, "not measurable here"))

    monkeypatch.setattr(console, "check_rules", attempt)
    return attempted


def test_the_kinds_to_probe_are_chosen(lab, attempted, tmp_path):
    out = tmp_path / "out.toml"
    took = lab("probe", "--kind", "speed", "-o", out, *TARGET)
    assert took.code == 0
    assert {rule.kind for rule in attempted} == {"speed"}
    assert f"{len(SPEED)} speed rules have two right programs" in took.out
    assert "0 of 0 are rules" in took.out
    assert not out.exists()


def test_without_a_gpu_they_are_left_out_unless_asked_for(lab, attempted, tmp_path):
    lab("probe", "-o", tmp_path / "out.toml", *TARGET)
    assert {"compile", "silent"} <= {rule.kind for rule in attempted}
    assert "speed" not in {rule.kind for rule in attempted}


def test_a_kind_that_is_none(lab):
    refused = lab("probe", "--kind", "speed,odd", *TARGET)
    assert "--kind speed,odd: 'odd' is none of compile, launch" in refused.complaint


def test_a_probed_rule_has_no_record_of_other_places(lab, attempted, tmp_path):
    lab("probe", "-o", tmp_path / "out.toml", *TARGET)
    assert [rule.name for rule in attempted if rule.holds or rule.gone or rule.gains] == []


def test_results_before_ctrl_c_are_kept(lab, monkeypatch, tmp_path):
    here = Platform("0.0.1", "sm_90")
    path = tmp_path / "memory.toml"

    def one_and_no_more(rules, machine, report, **options):
        rule = next(rule for rule in rules if rule.name == "no-break")
        failed = Failed("compile_error", "")
        report(CheckedRule(dataclasses.replace(rule, holds=(here,)), failed, RIGHT, True))
        raise KeyboardInterrupt

    monkeypatch.setattr(console, "check_rules", one_and_no_more)
    stopped = lab("probe", "-o", path, *TARGET)
    assert stopped.code == 130
    assert "stopped 1 of" in stopped.out
    assert {rule.name: rule.holds for rule in load_memory(path)} == {"no-break": (here,)}
