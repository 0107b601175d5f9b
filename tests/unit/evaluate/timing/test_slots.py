import pytest
import torch

from adaexplore.evaluate.timing.slots import Slots, kept_for, unseal
from adaexplore.evaluate.wire.tensors import private_ring, share_ring
from adaexplore.sandbox.user.values import Inputs, tensors_of

DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]
DTYPES = [
    torch.float32,
    torch.bfloat16,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.float8_e4m3fn,
]
KEY = (1 << 63) - 5


def sample(dtype, *shape, device="cpu"):
    return (torch.randn(*shape, device=device) * 3).to(dtype)


def inputs_on(device):
    x = torch.randn(8, 20, device=device).t()
    return Inputs([x, 3], {"mask": torch.rand(7, device=device) > 0.5})


def slots_for(inputs, count, make_ring=share_ring):
    return Slots(inputs, count, make_ring, kept_for(inputs, count))


def equal(slot, inputs):
    return all(map(torch.equal, tensors_of(slot), tensors_of(inputs)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make_ring", [share_ring, private_ring])
class TestSlots:
    def test_a_slot_holds_nothing_of_its_inputs_until_it_is_opened(self, device, make_ring):
        filled = [inputs_on(device) for _ in range(3)]
        slots = slots_for(filled[0], 3, make_ring)
        for i, inputs in enumerate(filled):
            slots.fill(i, inputs)
        for i, inputs in enumerate(filled):
            for closed, wanted in zip(slots.inputs[i:], filled[i:], strict=True):
                x, y = closed.args[0], wanted.args[0]
                assert float((x == y).float().mean()) < 0.05
            unseal(slots.words[i], slots.open(i)).complete()
            assert equal(slots.inputs[i], inputs)
            assert slots.inputs[i].args[1] == 3

    def test_a_slot_that_is_closed_again_opens_with_the_same_inputs(self, device, make_ring):
        inputs = inputs_on(device)
        slots = slots_for(inputs, 2, make_ring)
        slots.fill(0, inputs)
        for _ in range(3):
            unseal(slots.words[0], slots.open(0)).complete()
            assert equal(slots.inputs[0], inputs)
            slots.close(2)

    def test_a_slot_can_be_filled_again_before_it_was_opened(self, device, make_ring):
        inputs = inputs_on(device)
        slots = slots_for(inputs, 1, make_ring)
        for _ in range(2):
            slots.fill(0, inputs)
        unseal(slots.words[0], slots.open(0)).complete()
        assert equal(slots.inputs[0], inputs)


@pytest.mark.gpu
def test_inputs_on_a_gpu_are_incomplete_while_its_cache_is_overwritten():
    inputs = inputs_on("cuda:0")
    slots = slots_for(inputs, 1)
    slots.fill(0, inputs)
    late = unseal(slots.words[0], slots.open(0))
    assert not torch.equal(slots.inputs[0].args[0], inputs.args[0])
    late.complete()
    assert equal(slots.inputs[0], inputs)


@pytest.mark.gpu
def test_every_slot_on_a_gpu_has_a_secret_key_of_its_own():
    slots = slots_for(inputs_on("cuda:0"), 8)
    for i in range(8):
        slots.fill(i, inputs_on("cuda:0"))
    keys = {slots.open(i) for i in range(8)}
    assert len(keys) == 8
    assert 0 not in keys


def test_inputs_without_tensors_have_slots_too():
    slots = slots_for(Inputs([3], {}), 2)
    slots.fill(1, Inputs([3], {}))
    unseal(slots.words[1], slots.open(1)).complete()
    assert slots.inputs[1].args == [3]


@pytest.mark.parametrize("device", DEVICES)
class TestSeal:
    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_sealing_twice_gives_what_was_there(self, device, dtype):
        tensor = sample(dtype, 30, 50, device=device)
        ring = share_ring(tensor, 2)
        ring.tensors[1].copy_(tensor)
        before = ring.words(1).clone()
        unseal([ring.words(1)], KEY).complete()
        assert float((ring.words(1) == before).float().mean()) < 0.01
        unseal([ring.words(1)], KEY).complete()
        assert torch.equal(ring.words(1), before)

    def test_every_bit_is_sealed(self, device):
        words = torch.zeros(1000, dtype=torch.int64, device=device)
        unseal([words], KEY)
        shares = [float((words >> bit & 1).float().mean()) for bit in range(64)]
        assert 0.4 < min(shares) <= max(shares) < 0.6

    def test_a_part_at_a_place_of_its_own_is_late(self, device):
        places = set()
        for key in range(KEY - 3, KEY + 1):
            words = torch.zeros(100_000, dtype=torch.int64, device=device)
            unseal([words], key).complete()
            late = unseal([words], key)
            [missing] = words.nonzero(as_tuple=True)
            assert len(missing) == 64
            places.add(int(missing[0]))
            late.complete()
            assert not bool(words.any())
        assert len(places) == 4

    def test_another_key_and_another_tensor_have_another_stream(self, device):
        first, second, third = (
            torch.zeros(100, dtype=torch.int64, device=device) for _ in range(3)
        )
        unseal([first, second], KEY)
        unseal([third], KEY - 1)
        streams = torch.cat([first, second, third])
        assert len(set(streams.tolist())) == 300

    def test_the_stream_of_a_large_tensor_does_not_repeat(self, device):
        words = torch.zeros((1 << 22) + 100, dtype=torch.int64, device=device)
        unseal([words], KEY)
        assert not torch.equal(words[:100], words[1 << 22 :])

    def test_the_state_of_the_default_generator_stays(self, device):
        torch.manual_seed(3)
        wanted = torch.rand(4, device=device)
        torch.manual_seed(3)
        unseal([torch.zeros(8, dtype=torch.int64, device=device)], KEY)
        assert torch.equal(torch.rand(4, device=device), wanted)
