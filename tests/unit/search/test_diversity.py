import itertools
import math
import random

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.verdict.evaluation import Estimate, Failed, Passed
from adaexplore.search.diversity import diversity
from adaexplore.search.traits import traits_of

PASSED = Passed("fp32", 1e-7, Estimate(10.0, "memory", "sm_90"))


def node(source, evaluation=PASSED, **more):
    return Node(1, 0, "large", Proposal(Candidate(source, "triton"), "x", ""), evaluation, **more)


def test_structures_are_numbered_in_order_of_discovery():
    product = node("tl.dot(a, b)")
    nodes = [node("a + b"), node("x", Failed("timeout", "slow")), product, node("a - b"), product]
    assert [spread[0] for spread in diversity(nodes)] == [1, None, 2, 1, 2]
    assert [spread[1] for spread in diversity(nodes)] == [1, 1, 2, 2, 2]


def test_the_distance_is_the_mean_over_all_pairs():
    rng = random.Random(0)
    words = ["load", "store", "dot", "sum", "exp", "mask"]
    nodes = [node(" ".join(rng.choices(words, k=9))) for _ in range(12)]
    pairs = itertools.combinations([traits_of(each).vector for each in nodes], 2)
    squares = [math.dist(a, b) ** 2 for a, b in pairs]
    assert diversity(nodes)[-1][2] == pytest.approx(math.sqrt(sum(squares) / len(squares)))


def test_repeats_and_failures_leave_the_distance_unchanged():
    two = [node("a + b"), node("exp(a)")]
    more = [*two, node("x", Failed("timeout", "slow")), node("exp(a)", reused=True)]
    assert diversity(two)[0][2] is None
    assert diversity(more)[-1][2] == diversity(two)[-1][2]
