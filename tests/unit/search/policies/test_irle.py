"""`irle`: large steps that are shown recent and elite kernels, half and half."""

from collections import Counter

import pytest
from policy_play import Play

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config


@pytest.mark.parametrize(("pool_size", "recent"), [(4, (7, 8)), (5, (7, 8)), (6, (6, 7, 8))])
def test_half_of_the_kernels_shown_are_the_latest_and_the_rest_are_others(pool_size, recent):
    play = Play("irle", Config(pool_size=pool_size))
    play.grow(*[2.0] * 8)
    older = set(range(1, 9)) - set(recent)
    seen = set()
    for step in play.selections(60):
        assert (step.node_id, step.step_kind) == (ROOT_ID, "large")
        assert step.pool[-len(recent) :] == recent
        assert len(set(step.pool)) == len(step.pool) == pool_size
        seen.update(step.pool[: -len(recent)])
    assert seen == older


def test_the_elites_are_drawn_by_a_softmax_of_their_speedups():
    play = Play("irle", Config(pool_size=2))
    for speedup in (3.0, 1.0, 2.0):
        play.add(speedup)
    shown = Counter(step.pool for step in play.selections(400))
    assert set(shown) == {(1, 3), (2, 3)}
    # e^3 / (e^3 + e^1) = 0.88 of 400: mean 352, standard deviation 6.5.
    assert 320 < shown[1, 3] < 385


def test_few_kernels_are_all_shown_once():
    play = Play("irle", Config(pool_size=6))
    assert play.select().pool == ()
    play.grow(1.0, 2.0)
    assert play.select().pool == (1, 2)


def test_recent_failures_are_shown_and_older_ones_are_no_elites():
    play = Play("irle", Config(pool_size=4))
    play.grow(None, 1.0, None, 2.0, None)
    assert {step.pool for step in play.selections(40)} == {(2, 4, 5)}
