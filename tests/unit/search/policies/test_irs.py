"""`irs`: one chain of small steps."""

import pytest
from policy_play import Play

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config


@pytest.mark.parametrize("p_large", [0.0, 1.0])
def test_every_step_but_the_first_is_a_small_change_to_the_latest_kernel(p_large):
    play = Play("irs", Config(p_large=p_large))
    assert play.select().step_kind == "large"
    assert play.grow(1.0, 3.0, 2.0, None, None, 1.0) == [ROOT_ID, 1, 2, 3, 4, 5]
    assert {play.tree[node].step_kind for node in range(2, 7)} == {"small"}
