"""`irb`: large steps that are shown the best kernels."""

from policy_play import FakeTraits, Play

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config
from adaexplore.search import Selection


def test_the_best_kernels_are_shown_best_first_and_the_older_of_equals_first():
    play = Play("irb", Config(pool_size=3))
    pools = []
    for speedup in (2.0, None, 9.0, 2.0, 1.0):
        pools.append(play.select().pool)
        play.add(speedup)
    assert pools == [(), (1,), (1, 2), (3, 1, 2), (3, 1, 4)]
    assert set(play.selections(20)) == {Selection(ROOT_ID, "large", (3, 1, 4))}


def test_failed_kernels_fill_up_the_context_those_that_compile_first():
    play = Play("irb", Config(pool_size=4))
    play.tree.add(1, ROOT_ID, "large", 0.0, (False, False, 0.0, 0.0))
    play.policy.record(play.tree, 1, FakeTraits())
    play.grow(None, 0.5, None)
    assert play.select().pool == (3, 2, 4, 1)
