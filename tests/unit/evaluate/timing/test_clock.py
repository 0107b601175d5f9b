import time

import pytest

from adaexplore.evaluate.timing.clock import CpuClock, clock_for

DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]


def ignore(i, outputs):
    pass


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [1, 5])
def test_every_call_is_timed_once_in_order_after_a_warm_up(device, count):
    calls = []
    clock = clock_for(device)
    clock.warm(calls.append)
    assert calls[0] == 0
    assert calls == list(range(len(calls)))
    calls.clear()
    times = clock.block(calls.append, count, ignore)
    assert len(times) == count
    assert calls == list(range(count))


@pytest.mark.parametrize("device", DEVICES)
def test_outputs_are_handed_over_before_the_next_call(device):
    events = []

    def call(i):
        events.append(("call", i))
        return i * i

    clock_for(device).block(call, 3, lambda i, outputs: events.append((i, outputs)))
    assert events == [("call", 0), (0, 0), ("call", 1), (1, 1), ("call", 2), (2, 4)]


def test_times_are_microseconds():
    [time_us] = CpuClock().block(lambda _: time.sleep(0.02), 1, ignore)
    assert time_us >= 20_000


def test_only_the_call_is_timed():
    times = CpuClock().block(lambda _: None, 3, lambda _, __: time.sleep(0.05))
    assert min(times) < 50_000


def test_an_exception_comes_through():
    def fail(_):
        raise LookupError

    with pytest.raises(LookupError):
        CpuClock().block(fail, 1, ignore)


@pytest.mark.parametrize("device", DEVICES)
def test_inputs_are_asked_for_after_the_outputs_before_and_before_the_call(device):
    events = []

    def ready(i):
        events.append(("ready", i))

    clock_for(device).block(
        lambda i: events.append(("call", i)), 2, lambda i, _: events.append(("sink", i)), ready
    )
    steps = ("ready", "call", "sink")
    assert events == [(step, i) for i in range(2) for step in steps]


@pytest.mark.parametrize("device", DEVICES)
def test_getting_inputs_is_outside_the_timed_window(device):
    def slowly(i):
        time.sleep(0.05)

    times = clock_for(device).block(lambda _: None, 2, ignore, slowly)
    assert min(times) < 50_000
