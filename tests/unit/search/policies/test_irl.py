"""`irl`: large steps that are shown the latest kernels."""

from policy_play import Play

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config
from adaexplore.search import Selection


def test_the_latest_kernels_are_shown_oldest_first_with_those_that_failed():
    play = Play("irl", Config(pool_size=3))
    pools = []
    for speedup in (9.0, 1.0, None, 2.0):
        pools.append(play.select().pool)
        play.add(speedup)
    assert pools == [(), (1,), (1, 2), (1, 2, 3)]
    assert set(play.selections(20)) == {Selection(ROOT_ID, "large", (2, 3, 4))}
