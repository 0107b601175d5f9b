"""`stepwise`: plans, carried out item by item on the last working kernel."""

import pytest
from policy_play import Play

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config
from adaexplore.search import Selection


def begun(speedup: float | None = 1.0, planned: int = 3, **parameters: float) -> Play:
    """Return a play with one plan, whose first version is node 1."""
    play = Play("stepwise", **parameters)
    play.add(speedup, planned=planned)
    return play


def test_each_item_is_carried_out_on_the_last_working_kernel():
    play = begun(planned=3)
    assert play.grow(1.1, 1.2, 1.3) == [1, 2, 3]
    assert play.select().node_id == ROOT_ID


@pytest.mark.parametrize("failed", [None, 0.5])
def test_a_failed_item_is_tried_again_and_then_skipped(failed):
    play = begun(planned=2, tries=2)
    assert play.grow(failed, failed, 1.2) == [1, 1, 1]
    assert play.select().node_id == ROOT_ID
    play = begun(planned=3, tries=2)
    assert play.grow(failed, 1.1, failed, failed, 1.2) == [1, 1, 3, 3, 3]
    assert play.select().node_id == ROOT_ID


def test_the_last_item_may_be_skipped_too():
    play = begun(planned=1, tries=3)
    assert play.grow(None, None, None) == [1, 1, 1]
    assert play.select().node_id == ROOT_ID


def test_an_item_may_cost_a_little_speed():
    for loss, parents in ((0.02, [1, 2, 3]), (0.0, [1, 1, 1])):
        assert begun(loss=loss).grow(0.985, 0.97, 0.96) == parents
    assert begun(loss=0.0).grow(1.0, 1.0, 1.0) == [1, 2, 3]


def test_no_more_items_count_than_the_parameter_says():
    play = begun(planned=3, items=1)
    assert play.grow(1.1) == [1]
    assert play.select().node_id == ROOT_ID


def test_a_step_without_a_plan_is_not_continued():
    assert begun(planned=0).select().node_id == ROOT_ID


def test_a_wrong_first_version_has_as_many_attempts_as_an_item():
    play = begun(None, tries=3)
    assert play.grow(None, None) == [1, 1]
    assert play.select().node_id == ROOT_ID
    assert begun(None, tries=1).select().node_id == ROOT_ID


def test_mending_the_first_version_is_no_item():
    play = begun(None, planned=2, tries=3)
    assert play.grow(None, 0.5, 0.6, None, 0.7) == [1, 1, 3, 4, 4]
    assert play.select().node_id == ROOT_ID


def test_a_new_plan_is_asked_for_beside_the_best_kernels():
    play = Play("stepwise", Config(pool_size=2))
    assert play.select() == Selection(ROOT_ID, "large", ())
    play.add(1.0, planned=2)
    assert play.grow(1.5, 3.0) == [1, 2]
    assert play.select() == Selection(ROOT_ID, "large", (3, 2))


def test_several_plans_go_on_beside_each_other():
    play = begun(1.0)
    play.add(1.0, planned=2)
    play.tree.begin(1, "small")
    assert play.select() == Selection(2, "small")
    play.tree.begin(2, "small")
    assert play.select().node_id == ROOT_ID
    play.tree.end(1, "small")
    assert play.select() == Selection(1, "small")
    play.add(1.5, 1)
    assert play.select() == Selection(3, "small")


def test_a_failure_in_one_plan_does_not_count_in_another():
    play = begun(1.0, planned=1, tries=2)
    play.add(1.0, planned=1)
    play.add(None, 1)
    play.add(None, 2)
    assert play.select() == Selection(1, "small")
    play.add(None, 1)
    assert play.select() == Selection(2, "small")


def test_variants_of_the_tuner_are_no_attempts():
    play = begun(1.0, planned=1, tries=2)
    play.add(None, 1, "tune")
    play.add(2.0, 1, "tune")
    assert play.grow(None, 1.1) == [1, 1]
    assert play.select().node_id == ROOT_ID
