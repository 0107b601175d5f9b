"""Contract of every policy (`core.policy.Policy`), on random searches."""

import copy
import inspect
import random
from dataclasses import dataclass, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from policy_play import FakeTraits, Play

from adaexplore.core.node import ROOT_ID, StepKind
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.policies import PARAMETERS, PolicyName
from adaexplore.search import POLICIES, Policy, Tree, context_ids, make_policy

few_examples = examples(max_examples=12, deadline=None)  # for each test and each policy
SHOWING_FAILURES = ("irb", "irl", "irle")
policies = pytest.mark.parametrize("name", sorted(POLICIES))


@dataclass(frozen=True)
class Step:
    parent_id: int
    kind: StepKind
    reward: float
    rank: tuple[bool, bool, float, float]
    traits: FakeTraits
    unjudged: bool
    planned: int = 0


@dataclass(frozen=True)
class History:
    """Recorded steps 1, 2, ... and the steps in flight."""

    steps: list[Step]
    pending: list[tuple[int, StepKind]]


ranks = st.one_of(
    st.sampled_from([(False, False, 0.0, 0.0), (True, False, 0.0, 0.0)]),
    st.sampled_from([0.3, 1.0, 2.0, 900.0]).map(lambda speedup: (True, True, speedup, 0.0)),
    st.sampled_from([-float("inf"), -20.0, -5.0]).map(lambda estimate: (True, True, 0.0, estimate)),
)
traits = st.builds(
    FakeTraits,
    st.tuples(st.integers(0, 2), st.integers(0, 1)),
    st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)


@st.composite
def histories(draw: st.DrawFn) -> History:
    count = draw(st.integers(0, 40))
    steps = [draw(_steps(node_id)) for node_id in range(1, count + 1)]
    places = [ROOT_ID, *(i for i, step in enumerate(steps, 1) if not step.unjudged)]
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
    unjudged = draw(st.integers(0, 9)) == 0
    planned = draw(st.integers(0, 3)) if kind == "large" else 0
    return Step(parent_id, kind, reward, draw(ranks), draw(traits), unjudged, planned)


some_settings = st.builds(
    Config,
    p_large=st.sampled_from([0.0, 0.2, 1.0]),
    pool_size=st.integers(1, 5),
    extra_max=st.integers(0, 2),
    small_limit=st.integers(0, 2),
)


def replayed(policy: Policy, history: History, *, selecting: bool = False) -> Tree:
    """Return the tree of a history, after recording every step in the policy as a search does.

    With `selecting`, the policy also selects before each step.
    """
    tree = Tree()
    for node_id, step in enumerate(history.steps, 1):
        if selecting:
            policy.select(tree, random.Random(node_id))
        if step.unjudged:
            tree.add_unjudged(node_id, step.parent_id, step.kind)
        else:
            tree.add(
                node_id, step.parent_id, step.kind, step.reward, step.rank, planned=step.planned
            )
            policy.record(tree, node_id, step.traits)
    for parent_id, kind in history.pending:
        tree.begin(parent_id, kind)
    return tree


def test_every_policy_name_of_the_settings_has_a_policy():
    assert set(POLICIES) == set(get_args(PolicyName))


@policies
def test_the_settings_know_the_parameters_of_a_policy_and_their_defaults(name):
    found = {
        parameter.name: parameter.default
        for parameter in inspect.signature(POLICIES[name]).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    known = {key: parameter.default for key, parameter in PARAMETERS.get(name, {}).items()}
    assert found == known
    assert {key: type(value) for key, value in found.items()} == {
        key: type(value) for key, value in known.items()
    }


def test_a_policy_is_made_with_the_parameters_of_its_text():
    settings = Config(policy="beam:width=1,branch=3", p_large=0.0)
    play = Play(make_policy(settings))
    assert play.grow(1.0, 2.0, 3.0, None) == [ROOT_ID] * 3 + [3]


@policies
@few_examples
@given(history=histories(), settings=some_settings, seed=st.integers(0, 2**32))
def test_a_selection_is_a_valid_step(name, history, settings, seed):
    policy = POLICIES[name](settings)
    tree = replayed(policy, history)
    selection = policy.select(tree, random.Random(seed))
    assert selection.node_id in tree
    assert selection.node_id == ROOT_ID or not history.steps[selection.node_id - 1].unjudged
    assert selection.step_kind == "large" or selection.node_id != ROOT_ID
    context = context_ids(tree, selection, settings, random.Random(seed))
    assert len(set(context)) == len(context) <= max(settings.pool_size, settings.window)
    if selection.step_kind == "large":
        assert len(context) <= settings.pool_size
        assert name in SHOWING_FAILURES or all(tree[kernel].correct for kernel in context)
    else:
        assert context[-1] == selection.node_id


@policies
@few_examples
@given(history=histories(), settings=some_settings, seed=st.integers(0, 2**32))
def test_a_resumed_policy_selects_like_an_uninterrupted_one(name, history, settings, seed):
    """Selecting changes neither the policy nor the tree."""
    uninterrupted, resumed = POLICIES[name](settings), POLICIES[name](settings)
    tree = replayed(uninterrupted, history, selecting=True)
    before = copy.deepcopy(vars(tree))
    selection = uninterrupted.select(tree, random.Random(seed))
    assert vars(tree) == before
    repeated = resumed.select(replayed(resumed, history), random.Random(seed))
    assert repeated == selection


@policies
@few_examples
@given(history=histories(), seed=st.integers(0, 2**32))
def test_ending_the_steps_in_flight_restores_the_policy_and_the_tree(name, history, seed):
    policy = POLICIES[name](Config())
    tree = replayed(policy, history)
    for parent_id, kind in history.pending[::-1]:
        tree.end(parent_id, kind)
    other = POLICIES[name](Config())
    quiet = replayed(other, replace(history, pending=[]))
    assert vars(tree) == vars(quiet)
    assert policy.select(tree, random.Random(seed)) == other.select(quiet, random.Random(seed))


@policies
def test_a_search_begins_with_large_steps_from_the_root(name):
    policy = POLICIES[name](Config())
    tree = Tree()
    for _ in range(5):
        selection = policy.select(tree, random.Random(0))
        assert (selection.node_id, selection.step_kind) == (ROOT_ID, "large")
        tree.begin(ROOT_ID, "large")
