"""The part of a budget's time that earlier sessions have used."""

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.settings.limits import parse_budget
from adaexplore.core.verdict.evaluation import Cost, Failed
from adaexplore.run.proposers import clock


def steps(spans):
    """Steps that began and lasted so, in seconds: proposing, then evaluating."""
    proposal = Proposal(Candidate("", "cpp"), "fake", "")
    return [
        Node(
            number,
            0,
            "large",
            proposal,
            Failed("rejected", "no", cost=Cost(wall_s=evaluate_s)),
            began,
            propose_s=propose_s,
        )
        for number, (began, propose_s, evaluate_s) in enumerate(spans, 1)
    ]


@pytest.mark.parametrize(
    ("spans", "used_s"),
    [
        ([(0, 20, 10), (30, 20, 10)], 60),  # one after the other
        ([(0, 20, 10), (1000, 20, 10)], 60),  # with a night between them
        ([(0, 20, 10), (0, 25, 10), (5, 20, 10)], 35),  # side by side
        ([(5, 20, 10), (0, 100, 0)], 100),  # one within another, recorded before it
    ],
)
def test_time_is_used_once_whoever_works_in_it(spans, used_s):
    assert clock(parse_budget(f"{used_s}s"), steps(spans))() is not None
    assert clock(parse_budget(f"{used_s + 60}s"), steps(spans))() is None
