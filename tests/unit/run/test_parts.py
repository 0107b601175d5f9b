"""Objects of the user in place of the package's own parts."""

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.run.parts import take_objects


class Chooses:
    def select(self, tree, rng): ...

    def record(self, tree, node_id, traits): ...


@pytest.mark.parametrize(
    ("name", "given", "lacks"),
    [
        ("policy", object(), r"select\(\)"),
        ("policy", type("Half", (), {"select": Chooses.select})(), r"record\(\)"),
        ("proposer", object(), r"begin\(\)"),
        ("evaluator", 5, r"prepare\(\)"),
    ],
)
def test_an_object_without_a_method_is_refused_at_once(name, given, lacks):
    with pytest.raises(BadInputError, match=rf"^{name}=.*: it has no {lacks}; give an object with"):
        take_objects({name: given})


@pytest.mark.parametrize("policy", [Chooses(), Chooses, lambda config: Chooses()])
def test_a_policy_and_what_makes_one_are_taken(policy):
    parts, left = take_objects({"policy": policy, "steps": 3})
    assert parts.policy is policy
    assert left == {"steps": 3}
