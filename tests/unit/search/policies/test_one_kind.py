"""`step_kinds`: any policy with steps of one kind alone."""

import random

import pytest
from policy_play import Play

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config
from adaexplore.search import POLICIES, context_ids, make_policy

SPEEDUPS = [1.5, None, 1.2, 2.0, None, 1.7, 2.5, 1.1, None, 2.2, 1.9, 3.0]


def played(name, kinds, speedups=SPEEDUPS):
    play = Play(make_policy(Config(policy=name, step_kinds=kinds)))
    steps = []
    for speedup in speedups:
        step = play.select(len(steps))
        steps.append(step)
        play.add(speedup, step.node_id, step.step_kind)
    return play, steps


@pytest.mark.parametrize("name", sorted(POLICIES))
@pytest.mark.parametrize("kinds", ["large", "small"])
def test_every_policy_takes_steps_of_that_kind_alone(name, kinds):
    play, steps = played(name, kinds)
    assert [step.step_kind for step in steps] == ["large"] + [kinds] * (len(steps) - 1)
    assert all(step.node_id != ROOT_ID for step in steps if step.step_kind == "small")
    settings = Config(policy=name, step_kinds=kinds)
    for step in steps:
        context_ids(play.tree, step, settings, random.Random(0))


@pytest.mark.parametrize("name", ["uct", "archive", "beam"])
def test_both_kinds_are_taken_without_it(name):
    _, steps = played(name, "both", SPEEDUPS * 3)
    assert {step.step_kind for step in steps} == {"large", "small"}


def test_a_large_step_that_becomes_small_changes_the_best_kernel():
    play = Play(make_policy(Config(policy="archive", step_kinds="small")))
    for speedup in (1.5, 2.5, None):
        play.add(speedup, ROOT_ID, "large")
    assert play.select().node_id == 2  # the policy still plants founders


def test_without_a_correct_kernel_it_changes_the_latest():
    play = Play(make_policy(Config(policy="archive", step_kinds="small")))
    play.add(None)
    play.add(None)
    step = play.select()
    assert (step.node_id, step.step_kind) == (2, "small")


def test_uct_descends_from_the_root_for_small_steps():
    play, steps = played("uct", "small", [1.0, *[0.9] * 12])
    assert len(play.tree[ROOT_ID].children) == 1
    assert len({step.node_id for step in steps}) > 3  # no hill climbing from the best alone


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_without_a_pool_large_steps_show_no_kernel(name):
    settings = Config(policy=name, pool_size=0, step_kinds="large", extra_max=3)
    play = Play(make_policy(settings))
    for i, speedup in enumerate(SPEEDUPS):
        step = play.select(i)
        assert context_ids(play.tree, step, settings, random.Random(i)) == ()
        play.add(speedup, step.node_id, step.step_kind)
