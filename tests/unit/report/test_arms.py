"""What makes the arms of a comparison."""

import pytest
from traced import reaching

from adaexplore.core.errors import BadInputError
from adaexplore.report.compare.arms import make_arms


def facets(**changes):
    return {"policy": "uct", "c": 0.3, "reward": "log", "seed": 0, "commit": "a", **changes}


def run(problem="a", **changes):
    return reaching("uct", problem, 2.0, facets=facets(**changes))


def names(traces, by=()):
    return [arm.name for arm in make_arms(traces, by)[0]]


def test_runs_fall_apart_by_all_in_which_those_of_a_problem_differ():
    traces = [run(), run(policy="beam"), run(policy="beam", c=0.5), run("b", policy="beam")]
    assert names(traces) == ["uct, c=0.3", "beam, c=0.3", "beam, c=0.5"]


def test_what_differs_from_problem_to_problem_makes_no_arm():
    assert names([run("a", c=0.3), run("b", c=0.5)]) == ["all runs"]


def test_seeds_are_repetitions_and_commits_are_named():
    arms, notes = make_arms([run(), run(seed=1), run(seed=2, commit="b")])
    assert [(arm.name, len(arm.traces)) for arm in arms] == [("all runs", 3)]
    assert notes == ["runs were made by 2 commits of adaexplore (--by commit)"]
    assert names([run(), run(commit="b")], ["commit"]) == ["commit=a", "commit=b"]


def test_what_is_asked_for_decides_and_hides_nothing():
    arms, notes = make_arms([run(c=0.3), run(c=0.5), run(policy="ps")], ["policy"])
    assert [arm.name for arm in arms] == ["uct", "ps"]
    assert notes == ["uct has runs that differ in c: add --by c to tell them apart"]


def test_a_facet_that_there_is_not():
    with pytest.raises(BadInputError, match=r"--by polcy: .* did you mean policy"):
        make_arms([run()], ["polcy"])
