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
    return [[t.clone() for t in tensors_of(slot)] for slot in fresh.slots]


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
        assert [slot.args[2] for slot in fresh_of(RANDOM).slots] == [3] * 4

    def test_the_addresses_stay(self, fresh_of):
        fresh = fresh_of(RANDOM)
        before = [[t.data_ptr() for t in tensors_of(slot)] for slot in fresh.slots]
        fresh.refill(fresh.count)
        assert [[t.data_ptr() for t in tensors_of(slot)] for slot in fresh.slots] == before
        assert len({pointer for slot in before for pointer in slot}) == 8

    @pytest.mark.parametrize(
        "inputs",
        [
            pytest.param("[torch.ones(8, 16)]", id="the same each time"),
            pytest.param("[torch.randn(int(torch.randint(4, 90, ())), 16)]", id="of any size"),
        ],
    )
    def test_inputs_that_cannot_be_drawn_anew_are_scaled(self, fresh_of, inputs):
        fresh = fresh_of(f"def get_inputs():\n    return {inputs}\n")
        before = content(fresh)
        fresh.refill(fresh.count)
        after = content(fresh)
        assert not any(equal(a, b) for a, b in zip(before, after, strict=True))
        assert all(b[0].shape == a[0].shape for a, b in zip(before, after, strict=True))

    def test_zeros_stay_zeros_when_they_are_scaled(self, fresh_of):
        fresh = fresh_of("def get_inputs():\n    return [torch.eye(8)]\n")
        for slot in content(fresh):
            assert torch.equal(slot[0] != 0, torch.eye(8) != 0)


def complete(fresh):
    """As the judge completes its own slots and a candidate's process the shared ones."""
    for i, slot in enumerate(fresh.slots):
        fresh.complete(i)
        fresh.late_inputs.give(i, tensors_of(slot))


class TestWithheld:
    def test_until_a_call_begins_every_slot_lacks_some(self, fresh_of):
        fresh = fresh_of("def get_inputs():\n    return [torch.randn(40, 16), torch.randn(3)]\n")
        assert [fresh.original(i) for i in range(fresh.count)] == [None] * fresh.count
        before = content(fresh)
        complete(fresh)
        for early, late in zip(before, content(fresh), strict=True):
            assert 1 <= int((early[0] != late[0]).sum()) <= 64
            assert bool((early[1] != late[1]).all())

    def test_where_they_are_changes(self, fresh_of):
        fresh = fresh_of("def get_inputs():\n    return [torch.randn(100_000)]\n")
        places = set()
        for _ in range(4):
            fresh.refill(fresh.count)
            places.add(fresh.late_inputs.places(0)[0])
        assert len(places) == 4

    def test_slots_that_were_not_filled_again_keep_theirs(self, fresh_of):
        fresh = fresh_of("def get_inputs():\n    return [torch.randn(100_000)]\n")
        complete(fresh)
        before = content(fresh)
        fresh.refill(1)
        complete(fresh)
        assert fresh.original(0) is not None
        assert all(map(equal, before[1:], content(fresh)[1:]))

    def test_empty_inputs_lack_nothing(self, fresh_of):
        fresh = fresh_of("def get_inputs():\n    return [torch.randn(4), torch.empty(0, 3)]\n")
        complete(fresh)
        assert fresh.original(0) is not None


class TestOriginal:
    def test_it_is_what_the_slot_holds(self, fresh_of):
        fresh = fresh_of(RANDOM)
        complete(fresh)
        for i, slot in enumerate(content(fresh)):
            assert equal(tensors_of(fresh.original(i)), slot)

    def test_a_slot_that_was_written_to_has_none(self, fresh_of):
        fresh = fresh_of(RANDOM)
        complete(fresh)
        tensors_of(fresh.slots[1])[0][0, 0] += 1
        assert fresh.original(1) is None
        assert fresh.original(0) is not None


class TestOwnSlots:
    def test_they_hold_the_same(self, fresh_of):
        fresh = fresh_of(RANDOM)
        fresh.refill(fresh.count)
        complete(fresh)
        for slot, own in zip(fresh.slots, fresh.own_slots, strict=True):
            assert equal(tensors_of(slot), tensors_of(own))

    def test_indices_in_them_are_out_of_anybody_s_reach(self, fresh_of):
        fresh = fresh_of(RANDOM)
        for slot in fresh.slots:
            slot.args[1].fill_(10**6)
        assert all(int(own.args[1].max()) < 5 for own in fresh.own_slots)


LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.t().contiguous().t(),
}


class TestOutputs:
    def test_what_was_taken_is_there_and_nothing_else(self, fresh_of):
        fresh = fresh_of(RANDOM)
        fresh.poison(fresh.count)
        fresh.take(2, [("output", torch.full((8, 16), 7.0))])
        [places] = fresh.places(((16, 1),))
        kept = [bool(place.isnan().all()) for place in places.tensors]
        assert kept == [True, True, False, True]
        assert bool((places.tensors[2] == 7).all())

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_a_baseline_s_output_is_copied_in_the_order_of_memory(self, fresh_of, layout):
        fresh = fresh_of(RANDOM)
        out = LAYOUTS[layout](torch.arange(128.0).reshape(8, 16))
        fresh.take(1, [("output", out)])
        [ring], [places] = fresh.out_rings, fresh.places((out.stride(),))
        assert places.tensors[1].stride() == out.stride()
        assert torch.equal(places.tensors[1], out)
        memory = out.as_strided((128,), (1,))
        assert torch.equal(ring.tensors[1].flatten(), memory)

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


def test_captured_tokens_are_reordered_for_every_call(fresh_of, tmp_path):
    tokens = torch.randint(0, 50, (4, 16), generator=torch.Generator().manual_seed(0))
    torch.save({"args": [tokens, 3], "kwargs": {}}, tmp_path / "captured.pt")
    fresh = fresh_of("", workload=Workload("captured", file=str(tmp_path / "captured.pt")))
    complete(fresh)
    slots = [slot.args[0] for slot in fresh.slots]
    for i, one in enumerate(slots):
        assert torch.equal(one.flatten().sort()[0], tokens.flatten().sort()[0])
        assert not any(torch.equal(one, other) for other in [tokens, *slots[i + 1 :]])
