import pytest
import torch

from adaexplore.evaluate.timing.turnstile.slots import Slots, kept_for
from adaexplore.sandbox.user.values import Inputs, tensors_of

DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]
DTYPES = [
    torch.float32,
    torch.bfloat16,
    torch.int64,
    torch.bool,
    torch.float8_e4m3fn,
]


def inputs_on(device):
    x = torch.randn(8, 20, device=device).t()
    return Inputs([x, 3], {"mask": torch.rand(7, device=device) > 0.5})


def slots_for(inputs, count, *, shared=True):
    device = next((t.device for t in tensors_of(inputs)), torch.device("cpu"))
    return Slots(inputs, count, kept_for(inputs, count), device, shared=shared)


def open_slot(slots, index):
    key = slots.open(index)
    if slots.seals:
        slots.seals.turn_with(key, index)


def equal(slot, inputs):
    return all(map(torch.equal, tensors_of(slot), tensors_of(inputs)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shared", [True, False])
class TestSlots:
    def test_a_slot_holds_nothing_of_its_inputs_until_it_is_opened(self, device, shared):
        filled = [inputs_on(device) for _ in range(3)]
        slots = slots_for(filled[0], 3, shared=shared)
        for i, inputs in enumerate(filled):
            slots.fill(i, inputs)
        for i, inputs in enumerate(filled):
            for closed, wanted in zip(slots.inputs[i:], filled[i:], strict=True):
                x, y = closed.args[0], wanted.args[0]
                assert float((x == y).float().mean()) < 0.05
            open_slot(slots, i)
            assert equal(slots.inputs[i], inputs)
            assert slots.inputs[i].args[1] == 3

    def test_a_slot_that_is_closed_again_opens_with_the_same_inputs(self, device, shared):
        inputs = inputs_on(device)
        slots = slots_for(inputs, 2, shared=shared)
        slots.fill(0, inputs)
        for _ in range(3):
            open_slot(slots, 0)
            assert equal(slots.inputs[0], inputs)
            slots.close(2)

    def test_a_slot_can_be_filled_again_before_it_was_opened(self, device, shared):
        inputs = inputs_on(device)
        slots = slots_for(inputs, 1, shared=shared)
        for _ in range(2):
            slots.fill(0, inputs)
        open_slot(slots, 0)
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
    open_slot(slots, 1)
    assert slots.inputs[1].args == [3]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_of_every_type_have_slots(device, dtype):
    inputs = Inputs([(torch.randn(30, 50, device=device) * 3).to(dtype)], {})
    slots = slots_for(inputs, 2)
    slots.fill(1, inputs)
    open_slot(slots, 1)
    assert torch.equal(*(x.args[0].view(torch.uint8) for x in (slots.inputs[1], inputs)))
