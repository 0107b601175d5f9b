"""A run as a comparison sees it."""

from dataclasses import replace

import pytest
from hand_made import PROBLEM, failed, node, passed
from traced import reaching, steps, trace

from adaexplore.core.environment import Environment
from adaexplore.core.problem import Checks
from adaexplore.core.verdict.evaluation import Cost
from adaexplore.report.compare.traces import judged_on, points, spelled
from adaexplore.report.run.diversity import DiversityPoint


def test_use_adds_up_over_steps():
    made = steps(failed(), passed(2.0), spent=[(0.5, 100), (0.25, 50)])
    assert made[0].used == {
        "steps": 1,
        "evaluations": 1,
        "usd": 0.5,
        "tokens": 100,
        "seconds": pytest.approx(2.5),
    }
    assert made[1].used["usd"] == 0.75
    assert made[1].used["tokens"] == 150
    assert made[1].used["seconds"] == pytest.approx(6.0)
    assert made[1].device_s == 1.5
    assert [point.correct for point in made] == [False, True]


def test_a_repeat_is_no_evaluation_and_a_second_measurement_is_one():
    twice = (passed(3.0), passed(2.0))
    nodes = [
        node(1, passed(2.0), source="same"),
        node(2, passed(2.0), source="same", reused=True),
        node(3, passed(2.0), repeats=twice),
        node(4, replace(passed(2.0), cost=Cost()), source="comments differ", reused=True),
        node(5, passed(2.0), source="compiled to the same", reused=True),
    ]
    made = points(nodes, [(0.0, 0)] * 5, [DiversityPoint(1, 1, None)] * 5)
    assert [point.used["evaluations"] for point in made] == [1, 1, 3, 3, 4]


def test_time_of_overlapping_steps_counts_once():
    nodes = [
        node(1, failed(), started_at=100.0, propose_s=8.0),  # until 110
        node(2, failed(), started_at=104.0, propose_s=2.0),  # until 108
        node(3, failed(), started_at=105.0, propose_s=13.0),  # until 120
        node(4, failed(), started_at=500.0, propose_s=3.0),  # until 505
    ]
    made = points(nodes, [(0.0, 0)] * 4, [DiversityPoint(None, 0, None)] * 4)
    assert [point.used["seconds"] for point in made] == [10.0, 8.0, 20.0, 25.0]


def test_best_within_an_amount():
    run = trace("uct", "a", failed(), passed(2.0), passed(1.5), passed(3.0))
    assert run.best("steps", 1) is None
    assert [run.best("steps", at).speedup for at in (2, 3, 4)] == [2.0, 2.0, 3.0]
    assert run.reach("steps") == 4
    assert replace(run, ended=True).reach("steps") > 10**9


def test_the_key_is_source_and_requirements():
    here, there = reaching("uct", "a", 2.0), reaching("uct", "b", 2.0)
    assert here.key != there.key
    same = replace(there.problem, source=here.problem.source, seed=7)
    assert replace(there, problem=same).key == here.key
    assert replace(there, problem=replace(same, checks=Checks("tf32"))).key != here.key


def test_describes_the_measuring_machine():
    facts = Environment(cpu="EPYC", threads=2, torch="2.13.0", gpu="H200")
    assert judged_on(PROBLEM, facts) == "EPYC, 2 threads, torch 2.13.0"
    assert judged_on(replace(PROBLEM, device="cuda:1"), facts) == "H200, torch 2.13.0"
    estimated = judged_on(replace(PROBLEM, target="sm_90"), facts)
    assert estimated == "EPYC, 2 threads, torch 2.13.0, estimated for sm_90"


@pytest.mark.parametrize(
    ("axis", "amount", "said"),
    [
        ("steps", 25, "25 steps"),
        ("evaluations", 1, "1 evaluation"),
        ("usd", 0.5, "0.5000 USD"),
        ("tokens", 500_000, "500 ktok"),
        ("seconds", 1800, "30 min 00 s"),
    ],
)
def test_amounts_have_their_units(axis, amount, said):
    assert spelled(axis, amount) == said
