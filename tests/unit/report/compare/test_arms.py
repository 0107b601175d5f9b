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


def test_facets_that_differ_within_a_problem_separate_arms():
    traces = [run(), run(policy="beam"), run(policy="beam", c=0.5), run("b", policy="beam")]
    assert names(traces) == ["uct, c=0.3", "beam, c=0.3", "beam, c=0.5"]


def test_facets_that_differ_between_problems_do_not_separate_arms():
    assert names([run("a", c=0.3), run("b", c=0.5)]) == ["all runs"]


def test_seeds_are_repetitions_and_commits_are_noted():
    arms, notes = make_arms([run(), run(seed=1), run(seed=2, commit="b")])
    assert [(arm.name, len(arm.traces)) for arm in arms] == [("all runs", 3)]
    assert notes == ["runs were made by 2 commits of adaexplore (--by commit)"]
    assert names([run(), run(commit="b")], ["commit"]) == ["commit=a", "commit=b"]


def test_requested_facets_decide_and_others_are_noted():
    arms, notes = make_arms([run(c=0.3), run(c=0.5), run(policy="ps")], ["policy"])
    assert [arm.name for arm in arms] == ["uct", "ps"]
    assert notes == ["uct has runs that differ in c: add --by c to tell them apart"]


def test_an_unknown_facet_is_refused():
    with pytest.raises(BadInputError, match=r"--by polcy: .* did you mean policy"):
        make_arms([run()], ["polcy"])
