"""Runs as data."""

import math
from dataclasses import replace

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.verdict.evaluation import Estimate, Failed, Passed, Timing
from adaexplore_lab.simulate import read_runs, recorded_run, runs_json


def passed(speedup, low, high):
    return Passed("fp32", 0.0, Timing(1.0, (1.0, 1.0), {}, speedup, (low, high), 3 * speedup, 7))


def node(number, parent, kind, evaluation):
    proposal = Proposal(Candidate(str(number), "cpp"), "model", "")
    return Node(number, parent, kind, proposal, evaluation)


NODES = [
    node(1, 0, "large", passed(2.0, 1.9, 2.1)),
    node(2, 1, "small", Failed("wrong_output", "no")),
    node(3, 1, "small", Failed("infra_error", "gone")),
    node(4, 1, "small", Passed("fp32", 0.0, Estimate(10.0, "memory", "sm_90"))),
    node(5, 2, "large", passed(0.5, 0.0, 1.0)),
]


def test_steps_that_were_judged_are_kept_with_what_came_of_them():
    kept = recorded_run("mine", "problem", NODES).steps
    assert [(s.id, s.parent_id, s.step_kind, s.status) for s in kept] == [
        (1, 0, "large", "passed"),
        (2, 1, "small", "wrong_output"),
        (5, 2, "large", "passed"),
    ]
    assert [(s.speedup, s.speedup_eager) for s in kept] == [(2.0, 6.0), (0.0, 0.0), (0.5, 1.5)]
    assert kept[0].noise == pytest.approx(math.log(2.1 / 1.9) / 3.92)
    assert kept[1].noise is None
    assert kept[2].noise is None  # its interval begins at 0


def test_what_short_calls_do_not_prove_is_no_noise():
    found = passed(2.0, 1.0, 2.1)
    unproven = replace(found, timing=replace(found.timing, allowance=(0.5, 1.0)))
    [step] = recorded_run("mine", "problem", [node(1, 0, "large", unproven)]).steps
    assert step.noise == pytest.approx(math.log(2.1 / 2.0) / 3.92)


def test_a_file_gives_back_what_was_written(tmp_path):
    path = tmp_path / "runs.json"
    runs = [recorded_run("mine", "problem", NODES), recorded_run("other", "else", NODES[:1])]
    path.write_text(runs_json(runs))
    assert read_runs(path) == runs


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"runs": [{"name": "x", "problem": "y", "steps": [{"id": 1}]}]}']
)
def test_a_file_that_is_no_landscape(text, tmp_path):
    path = tmp_path / "runs.json"
    path.write_text(text)
    with pytest.raises(BadInputError, match="is no landscape"):
        read_runs(path)
    with pytest.raises(BadInputError, match="cannot read"):
        read_runs(tmp_path / "none.json")
