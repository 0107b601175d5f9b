"""`widening`: visits bound the number of children."""

import pytest
from policy_play import Play

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config


@pytest.mark.parametrize(
    ("parameters", "steps"),
    [
        ({}, [0, 2, 5, 10, 17]),  # the root has fewer children than sqrt(visits)
        ({"factor": 2.0}, [0, 1, 2, 3, 5, 7, 10, 13, 17]),  # ... than 2 sqrt(visits)
        ({"exponent": 0.0}, [0]),  # ... than 1
    ],
)
def test_the_root_grows_while_its_children_are_fewer_than_its_visits_allow(parameters, steps):
    parents = Play("widening", **parameters).grow(*[1.0] * 20)
    assert [step for step, parent in enumerate(parents) if parent == ROOT_ID] == steps


def test_below_the_root_the_better_child_is_taken():
    play = Play("widening", Config(c=0.0))
    play.grow(1.0)
    play.add(2.0)
    play.add(1.0)
    assert play.select().node_id == 2
