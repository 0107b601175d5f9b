import pytest
import torch

from adaexplore.evaluate.timing.output_copy import OutputCopyCost


class Clock:
    """Runs what is timed, and tells times that were laid down beforehand, a block each."""

    def __init__(self, *blocks_us):
        self._blocks_us = list(blocks_us)

    def warm(self, call):
        call(0)

    def block(self, call, count, sink, ready=None):
        for i in range(count):
            sink(i, call(i))
        return [self._blocks_us.pop(0)] * count


def delivery(*shape, blocks_us=()):
    clock = Clock(*blocks_us)
    return OutputCopyCost([("output", torch.zeros(*shape))], lambda: clock)


def test_the_reference_s_own_layout_takes_nothing_more():
    assert delivery(256, 512).extra_us([(512, 1)]) == 0.0


def test_another_layout_takes_what_its_copy_takes_beyond_the_reference_s():
    assert delivery(64, 32, blocks_us=[5.0, 2.0]).extra_us([(1, 64)]) == 3.0


def test_a_copy_that_happens_to_be_faster_takes_nothing_off():
    assert delivery(64, 32, blocks_us=[2.0, 5.0]).extra_us([(1, 64)]) == 0.0


def test_a_layout_is_timed_once():
    taken = delivery(64, 32, blocks_us=[5.0, 2.0])
    assert taken.extra_us([(1, 64)]) == taken.extra_us([(1, 64)]) == 3.0


@pytest.mark.parametrize(
    "strides",
    [
        pytest.param((1 << 40, 1), id="larger than any memory"),
        pytest.param((-512, 1), id="negative"),
        pytest.param((1,), id="of another rank"),
    ],
)
def test_what_nobody_returns_is_granted_nothing(strides):
    assert delivery(256, 512).extra_us([strides]) == 0.0


def test_scalars_and_empty_tensors_take_nothing_more():
    outputs = [("a", torch.zeros(())), ("b", torch.zeros(0, 4))]
    assert OutputCopyCost(outputs, Clock).extra_us([(), (1, 1)]) == 0.0
