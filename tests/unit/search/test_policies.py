"""What every policy promises (`search.policy.Policy`), on whatever search it finds."""

import copy
import random
from dataclasses import dataclass, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from adaexplore.core.config import PolicyName, Settings
from adaexplore.core.node import ROOT_ID, StepKind
from adaexplore.search import POLICIES, Policy, Tree, context_ids

fewer = examples(max_examples=30, deadline=None)  # of each, for each of eleven policies
policies = pytest.mark.parametrize("name", sorted(POLICIES))


@dataclass(frozen=True)
class Look:
    cell: tuple[int, ...] = (0, 0)
    vector: tuple[float, ...] = (1.0, 0.0)


@dataclass(frozen=True)
class Step:
    parent_id: int
    kind: StepKind
    reward: float
    rank: tuple[bool, bool, float, float]
    look: Look
    void: bool


@dataclass(frozen=True)
class History:
    """Recorded steps 1, 2, ... and those under way."""

    steps: list[Step]
    pending: list[tuple[int, StepKind]]


ranks = st.one_of(
    st.sampled_from([(False, False, 0.0, 0.0), (True, False, 0.0, 0.0)]),
    st.sampled_from([0.3, 1.0, 2.0, 900.0]).map(lambda speedup: (True, True, speedup, 0.0)),
    st.sampled_from([-float("inf"), -20.0, -5.0]).map(lambda guess: (True, True, 0.0, guess)),
)
looks = st.builds(
    Look,
    st.tuples(st.integers(0, 2), st.integers(0, 1)),
    st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)


@st.composite
def histories(draw: st.DrawFn) -> History:
    count = draw(st.integers(0, 40))
    steps = [draw(_steps(node_id)) for node_id in range(1, count + 1)]
    places = [ROOT_ID, *(i for i, step in enumerate(steps, 1) if not step.void)]
    pending = [
        (place, "large" if place == ROOT_ID else draw(st.sampled_from(["large", "small"])))
        for place in draw(st.lists(st.sampled_from(places), max_size=8))
    ]
    return History(steps, pending)


@st.composite
def _steps(draw: st.DrawFn, node_id: int) -> Step:
    parent_id = draw(st.integers(ROOT_ID, node_id - 1))
    kind = "large" if parent_id == ROOT_ID else draw(st.sampled_from(["large", "small"]))
    reward = draw(st.integers(0, 128)) / 64
    void = draw(st.integers(0, 9)) == 0
    return Step(parent_id, kind, reward, draw(ranks), draw(looks), void)


some_settings = st.builds(
    Settings,
    p_large=st.sampled_from([0.0, 0.2, 1.0]),
    pool_size=st.integers(1, 5),
    extra_max=st.integers(0, 2),
    small_limit=st.integers(0, 2),
)


def told(policy: Policy, history: History, *, selecting: bool = False) -> Tree:
    """The tree of a history, of which the policy was told as a search tells it.

    With `selecting`, it is asked before each step, too.
    """
    tree = Tree()
    for node_id, step in enumerate(history.steps, 1):
        if selecting:
            policy.select(tree, random.Random(node_id))
        if step.void:
            tree.add_unjudged(node_id, step.parent_id, step.kind)
        else:
            tree.add(node_id, step.parent_id, step.kind, step.reward, step.rank)
            policy.record(tree, node_id, step.look)
    for parent_id, kind in history.pending:
        tree.begin(parent_id, kind)
    return tree


def test_every_name_that_settings_know_has_a_policy():
    assert set(POLICIES) == set(get_args(PolicyName))


@policies
@fewer
@given(history=histories(), settings=some_settings, seed=st.integers(0, 2**32))
def test_a_selection_is_a_step_that_can_be_made(name, history, settings, seed):
    policy = POLICIES[name](settings)
    tree = told(policy, history)
    selection = policy.select(tree, random.Random(seed))
    assert selection.node_id in tree
    assert selection.node_id == ROOT_ID or not history.steps[selection.node_id - 1].void
    assert selection.step_kind == "large" or selection.node_id != ROOT_ID
    shown = context_ids(tree, selection, settings, random.Random(seed))
    assert len(set(shown)) == len(shown) <= max(settings.pool_size, settings.window)
    if selection.step_kind == "large":
        assert len(shown) <= settings.pool_size
        assert all(tree[kernel].correct for kernel in shown)
    else:
        assert shown[-1] == selection.node_id


@policies
@fewer
@given(history=histories(), settings=some_settings, seed=st.integers(0, 2**32))
def test_a_resumed_policy_selects_what_one_that_never_stopped_does(name, history, settings, seed):
    """Selecting leaves no trace, in the policy or in the tree."""
    lived, resumed = POLICIES[name](settings), POLICIES[name](settings)
    tree = told(lived, history, selecting=True)
    before = copy.deepcopy(vars(tree))
    selection = lived.select(tree, random.Random(seed))
    assert vars(tree) == before
    again = resumed.select(told(resumed, history), random.Random(seed))
    assert again == selection


@policies
@fewer
@given(history=histories(), seed=st.integers(0, 2**32))
def test_steps_under_way_that_end_leave_no_trace(name, history, seed):
    policy = POLICIES[name](Settings())
    tree = told(policy, history)
    for parent_id, kind in history.pending[::-1]:
        tree.end(parent_id, kind)
    other = POLICIES[name](Settings())
    calm = told(other, replace(history, pending=[]))
    assert vars(tree) == vars(calm)
    assert policy.select(tree, random.Random(seed)) == other.select(calm, random.Random(seed))


@policies
def test_a_search_that_begins_grows_from_nothing(name):
    policy = POLICIES[name](Settings())
    tree = Tree()
    for _ in range(5):
        selection = policy.select(tree, random.Random(0))
        assert (selection.node_id, selection.step_kind) == (ROOT_ID, "large")
        tree.begin(ROOT_ID, "large")
