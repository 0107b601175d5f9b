"""`ps`: independent samples."""

from policy_play import Play

from adaexplore.core.node import ROOT_ID
from adaexplore.search import Selection


def test_every_step_starts_from_nothing_whatever_was_found():
    play = Play("ps")
    assert play.grow(1.0, None, 9.0, 2.0, None) == [ROOT_ID] * 5
    assert set(play.selections(20)) == {Selection(ROOT_ID, "large", ())}
