import textwrap

import pytest
import torch

from adaexplore.evaluate.truth.inputs import DISTRIBUTIONS, OWN_SEEDS, InputSets
from adaexplore.sandbox.user_code import Instance
from adaexplore.sandbox.values import tensors_of

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, index, flag, scale, more):
        return x

def get_inputs():
    return [
        torch.rand(64, 64),
        torch.randint(5, (64,)),
        torch.rand(64) > 0.5,
        0.25,
        {"deep": torch.rand(16, dtype=torch.float64)},
    ]
"""
FLOATS = (0, 3)  # among the tensors


@pytest.fixture
def sets(tmp_path):
    def sets(seed=0):
        instance = Instance.load(
            textwrap.dedent(PROBLEM),
            "Model",
            device="cpu",
            seed=seed,
            mode="as-built",
            folder=tmp_path,
        )
        return {s.name: s for s in InputSets(instance, seed)}

    return sets


def floats(input_set):
    return [t for t in tensors_of(input_set.inputs) if t.is_floating_point()]


class TestInputSets:
    def test_own_seeds_come_first_then_each_distribution(self, sets):
        named = sets()
        assert [name for name, s in named.items() if s.own] == [
            f"own-{i}" for i in range(OWN_SEEDS)
        ]
        assert [name for name, s in named.items() if not s.own] == list(DISTRIBUTIONS)

    def test_no_two_sets_are_alike(self, sets):
        seen = [t[0] for t in map(floats, sets().values())]
        for i, left in enumerate(seen):
            assert not any(torch.equal(left, right) for right in seen[i + 1 :])

    def test_the_same_seed_gives_the_same_sets(self, sets):
        for one, other in zip(sets(3).values(), sets(3).values(), strict=True):
            pairs = zip(tensors_of(one.inputs), tensors_of(other.inputs), strict=True)
            assert all(torch.equal(left, right) for left, right in pairs)

    def test_another_seed_gives_others(self, sets):
        assert not torch.equal(floats(sets(0)["own-0"])[0], floats(sets(9)["own-0"])[0])

    def test_shapes_dtypes_and_what_is_no_tensor_stay(self, sets):
        named = sets()
        form = [(t.shape, t.dtype) for t in tensors_of(named["own-0"].inputs)]
        for input_set in named.values():
            assert [(t.shape, t.dtype) for t in tensors_of(input_set.inputs)] == form
            assert input_set.inputs.args[3] == 0.25

    def test_integers_and_booleans_stay_as_the_problem_draws_them(self, sets):
        for input_set in sets().values():
            _, index, flag, *_ = tensors_of(input_set.inputs)
            assert 0 <= int(index.min()) <= int(index.max()) < 5
            assert flag.dtype == torch.bool

    def test_the_distributions_are_what_they_are_called(self, sets):
        named = sets()
        for t in floats(named["normal"]):
            assert bool((t < 0).any())
        for t in floats(named["large"]):
            assert float(t.abs().max()) > 5
        for t in floats(named["negative"]):
            assert bool((t <= 0).all())
        for t in floats(named["sparse"]):
            assert 0.1 < float((t == 0).double().mean()) < 0.9
