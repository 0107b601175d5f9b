"""Landscapes fitted to runs."""

import random

import pytest

from adaexplore.candidate import Candidate
from adaexplore.errors import BadInputError
from adaexplore.evaluation import Estimate, Failed, Passed, Timing
from adaexplore.node import Node
from adaexplore.proposal import Proposal
from adaexplore.simulate import (
    Recorded,
    landscape_json,
    parse_contender,
    read_landscape,
    recorded_steps,
    run,
)


def passed(speedup):
    interval = (speedup / 1.02, speedup * 1.02)
    return Passed("fp32", 0.0, Timing(1.0, (1.0, 1.0), {}, speedup, interval, speedup, 7))


def node(number, parent, kind, evaluation):
    return Node(number, parent, kind, Proposal(Candidate(str(number), "cpp"), "x", ""), evaluation)


def nodes():
    """Large steps at 1x from nothing; small ones gain a tenth or fail; none exceeds 2x."""
    draw, made = random.Random(0), []
    for number in range(1, 61):
        parent = draw.choice([0, *[n.id for n in made]])
        if parent == 0:
            made.append(node(number, 0, "large", passed(1.0)))
            continue
        before = made[parent - 1].evaluation
        speedup = before.timing.speedup if isinstance(before, Passed) else 1.0
        fails = draw.random() < 0.3
        after = Failed("wrong_output", "no") if fails else passed(min(1.1 * speedup, 2.0))
        made.append(node(number, parent, "small", after))
    return made


@pytest.fixture
def landscape():
    return Recorded("run", recorded_steps(nodes()))


def test_what_was_recorded_comes_again(landscape):
    draw = random.Random(1)
    first = [landscape.grow(None, "large", [], draw) for _ in range(20)]
    assert all(kernel.speedup == pytest.approx(1.0) for kernel in first)
    after = [landscape.grow(first[0], "small", [], draw) for _ in range(400)]
    failed = sum(kernel.status != "passed" for kernel in after) / 400
    assert {kernel.status for kernel in after} == {"passed", "wrong_output"}
    assert 0.1 < failed < 0.6
    assert {round(kernel.speedup, 6) for kernel in after if kernel.speedup} == {1.1}


def test_nothing_goes_beyond_the_best_that_was_recorded(landscape):
    found = run(parse_contender("archive"), landscape, seed=0, steps=100)
    assert 1.05 < found[-1] <= landscape.optimum
    assert landscape.optimum == max(n.evaluation.timing.speedup for n in nodes() if is_right(n))


def is_right(node):
    return isinstance(node.evaluation, Passed)


def test_a_file_holds_the_same_landscape(landscape, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(landscape_json("run", recorded_steps(nodes())))
    contender = parse_contender("uct")
    assert run(contender, read_landscape(path), 0, 30) == run(contender, landscape, 0, 30)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "x", "steps": [{"id": 1}]}'])
def test_a_file_that_is_no_landscape(text, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(BadInputError, match="is no landscape"):
        read_landscape(path)
    with pytest.raises(BadInputError, match="cannot read"):
        read_landscape(tmp_path / "none.json")


def test_what_was_not_measured_teaches_nothing():
    estimate = Passed("fp32", 0.0, Estimate(10.0, "memory", "sm_90"))
    kept = recorded_steps(
        [
            node(1, 0, "large", Failed("infra_error", "gone")),
            node(2, 0, "large", estimate),
            node(3, 0, "large", passed(2.0)),
        ]
    )
    assert [step.id for step in kept] == [3]


def test_a_run_that_nothing_can_be_fitted_to():
    with pytest.raises(BadInputError, match="no kernel was correct"):
        Recorded("run", recorded_steps([node(1, 0, "large", Failed("timeout", "slow"))]))
    with pytest.raises(BadInputError, match="no small steps"):
        Recorded("run", recorded_steps([node(1, 0, "large", passed(2.0))]))
