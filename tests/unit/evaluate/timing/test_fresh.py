import textwrap

import pytest
import torch

from adaexplore.core.problem import Workload
from adaexplore.evaluate.timing.fresh import FreshInputs, poison
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import tensors_of

HEADER = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, *others):
        return x * 2
"""
DRAWN = Workload()
RANDOM = "def get_inputs():\n    return [torch.randn(8, 16), torch.randint(0, 5, (8,)), 3]\n"


@pytest.fixture
def fresh_of(tmp_path):
    def make(get_inputs, wanted=4, workload=DRAWN):
        instance = Instance.load(
            HEADER + textwrap.dedent(get_inputs),
            "Model",
            device="cpu",
            seed=0,
            mode="as-built",
            folder=tmp_path,
        )
        first = instance.inputs(0, workload)
        return FreshInputs(instance, first, instance(first), wanted, workload)

    return make


def content(fresh):
    """The inputs of every slot, opened as the judge does it for a candidate."""
    for i in range(fresh.count):
        fresh.given.open(i)
    return [[t.clone() for t in tensors_of(slot)] for slot in fresh.given.inputs]


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


class TestRefill:
    def test_every_slot_holds_something_else_and_something_new(self, fresh_of):
        fresh = fresh_of(RANDOM)
        before = content(fresh)
        fresh.refill(fresh.count)
        seen = before + content(fresh)
        assert fresh.count == 4
        for i, one in enumerate(seen):
            assert not any(torch.equal(one[0], other[0]) for other in seen[i + 1 :])

    def test_only_as_many_as_are_asked_for(self, fresh_of):
        fresh = fresh_of(RANDOM)
        before = content(fresh)
        fresh.refill(1)
        changed = [not equal(a, b) for a, b in zip(before, content(fresh), strict=True)]
        assert changed == [True, False, False, False]

    def test_what_is_no_tensor_stays(self, fresh_of):
        assert [slot.args[2] for slot in fresh_of(RANDOM).given.inputs] == [3] * 4

    def test_the_addresses_stay(self, fresh_of):
        fresh = fresh_of(RANDOM)
        before = [[t.data_ptr() for t in tensors_of(slot)] for slot in fresh.given.inputs]
        fresh.refill(fresh.count)
        assert [[t.data_ptr() for t in tensors_of(slot)] for slot in fresh.given.inputs] == before
        assert len({pointer for slot in before for pointer in slot}) == 8

    @pytest.mark.parametrize(
        "inputs",
        [
            pytest.param("[torch.ones(8, 16)]", id="the same each time"),
            pytest.param("[torch.randn(int(torch.randint(4, 90, ())), 16)]", id="of any size"),
            pytest.param("[torch.randn(8 + int(torch.rand(()) > 0.8), 16)]", id="of a rare size"),
        ],
    )
    def test_inputs_that_cannot_be_drawn_anew_are_scaled(self, fresh_of, inputs):
        fresh = fresh_of(f"def get_inputs():\n    return {inputs}\n")
        before = content(fresh)
        fresh.refill(fresh.count)
        after = content(fresh)
        assert not any(equal(a, b) for a, b in zip(before, after, strict=True))
        assert all(b[0].shape == a[0].shape for a, b in zip(before, after, strict=True))

    @pytest.mark.parametrize("mark", ["", "FROZEN_INPUTS = (1,)\n"])
    def test_inputs_that_a_problem_marks_stay_as_they_are(self, fresh_of, mark):
        inputs = "[torch.ones(8, 16), torch.tensor([0, 7, 2, 5, 1, 9, 3, 8, 4])]"
        fresh = fresh_of(f"{mark}def get_inputs():\n    return {inputs}\n")
        first = torch.tensor([0, 7, 2, 5, 1, 9, 3, 8, 4])
        assert all(torch.equal(one[1], first) for one in content(fresh)) is bool(mark)

    def test_zeros_stay_zeros_when_they_are_scaled(self, fresh_of):
        fresh = fresh_of("def get_inputs():\n    return [torch.eye(8)]\n")
        for slot in content(fresh):
            assert torch.equal(slot[0] != 0, torch.eye(8) != 0)


class TestOriginal:
    def test_it_is_what_the_slot_holds(self, fresh_of):
        fresh = fresh_of(RANDOM)
        for i, slot in enumerate(content(fresh)):
            assert equal(tensors_of(fresh.original(i)), slot)

    def test_a_slot_that_was_written_to_has_none(self, fresh_of):
        fresh = fresh_of(RANDOM)
        content(fresh)
        tensors_of(fresh.given.inputs[1])[0][0, 0] += 1
        assert fresh.original(1) is None
        assert fresh.original(0) is not None

    def test_empty_inputs_are_no_difference(self, fresh_of):
        fresh = fresh_of("def get_inputs():\n    return [torch.randn(4), torch.empty(0, 3)]\n")
        content(fresh)
        assert fresh.original(0) is not None


class TestOwn:
    """Memory of the baselines: nothing that a candidate writes changes it."""

    def test_its_slots_are_filled_as_those_of_candidates_are(self, fresh_of):
        fresh = fresh_of(RANDOM)
        fresh.prepare_own(fresh.count)
        for i in range(fresh.count):
            fresh.own.open(i)
        for slot, own in zip(content(fresh), fresh.own.inputs, strict=True):
            assert equal(slot, tensors_of(own))

    def test_inputs_that_a_candidate_writes_to_are_not_in_it(self, fresh_of):
        fresh = fresh_of(RANDOM)
        for ring in fresh.given.rings:
            ring.memory.tensor.zero_()
        fresh.prepare_own(fresh.count)
        for i in range(fresh.count):
            fresh.own.open(i)
            for ring in fresh.given.rings:  # while the call runs
                ring.memory.tensor.fill_(100)
            x, indices, _ = fresh.own.inputs[i].args
            assert float(x.abs().max()) < 50
            assert int(indices.max()) < 5

    def test_outputs_of_baselines_do_not_lie_where_candidates_write(self, fresh_of):
        fresh = fresh_of(RANDOM)
        fresh.poison(fresh.count)
        fresh.take(2, [("output", torch.full((8, 16), 7.0))])
        assert all(bool(place.isnan().all()) for place in fresh.out_rings[0].tensors)

    def test_first_inputs_that_a_candidate_changes_are_not_varied(self, tmp_path):
        source = HEADER + "def get_inputs():\n    return [torch.ones(8, 16)]\n"
        instance = Instance.load(
            source, "Model", device="cpu", seed=0, mode="as-built", folder=tmp_path
        )
        first = instance.inputs(0)
        fresh = FreshInputs(instance, first, instance(first), 2)
        first.args[0].fill_(1e-40)
        fresh.refill(2)
        assert all(float(slot[0].min()) >= 0.5 for slot in content(fresh))


class TestOutputs:
    def test_places_in_any_layout_are_poisoned(self, fresh_of):
        fresh = fresh_of(RANDOM)
        [places] = fresh.places(((1, 8),))
        for place in places.tensors:
            place.zero_()
        fresh.poison(2)
        assert [bool(p.isnan().all()) for p in places.tensors] == [True, True, False, False]


class TestCount:
    def test_large_tensors_have_few_slots(self, fresh_of):
        assert fresh_of("def get_inputs():\n    return [torch.zeros(1 << 22)]\n", 100).count <= 8

    @pytest.mark.slow
    def test_there_are_always_two(self, fresh_of):
        assert fresh_of("def get_inputs():\n    return [torch.zeros(1 << 25)]\n", 100).count == 2

    def test_what_takes_long_to_draw_has_few(self, fresh_of):
        slow = "import time\ndef get_inputs():\n    time.sleep(0.02); return [torch.randn(4)]\n"
        assert fresh_of(slow, 100).count == 2


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.int32, torch.bool, torch.complex64]
)
def test_poison_is_no_honest_result(dtype):
    for value in (0, 1):
        tensor = torch.full((4,), value).to(dtype)
        honest = tensor.clone()
        poison(tensor)
        assert not bool((tensor == honest).any())


def test_captured_tokens_are_others_for_every_call(fresh_of, tmp_path):
    tokens = torch.randint(0, 50, (4, 16), generator=torch.Generator().manual_seed(0))
    torch.save({"args": [tokens, 3], "kwargs": {}}, tmp_path / "captured.pt")
    fresh = fresh_of("", workload=Workload("captured", file=str(tmp_path / "captured.pt")))
    slots = [slot[0] for slot in content(fresh)]
    for i, one in enumerate(slots):
        assert torch.isin(one, tokens).all()
        others = [tokens, *slots[i + 1 :]]
        assert not any(torch.equal(one.flatten().sort()[0], o.flatten().sort()[0]) for o in others)


def test_a_number_that_differs_from_draw_to_draw_makes_no_draws_alike(fresh_of):
    drawn = "[torch.randint(0, 1 << 20, (64,)), float(torch.rand(()))]"
    fresh = fresh_of(f"def get_inputs():\n    return {drawn}\n")
    content(fresh)
    assert len({slot.args[1] for slot in fresh.given.inputs}) == 1  # slots hold tensors
    values = [set(slot.args[0].tolist()) for slot in fresh.given.inputs]
    assert all(len(one & other) < 8 for one in values for other in values if one is not other)


UNSEEDED = """
    import numpy
    def get_inputs():
        return [torch.from_numpy(numpy.random.default_rng().standard_normal((8, 16)))]
"""


def test_draws_that_no_seed_repeats_are_variations_which_can_be_drawn_again(fresh_of):
    fresh = fresh_of(UNSEEDED)
    content(fresh)
    assert all(fresh.original(index) is not None for index in range(fresh.count))
    fresh.given.inputs[0].args[0].add_(1)
    assert fresh.original(0) is None
