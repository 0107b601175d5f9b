import time

import pytest

from adaexplore.evaluate.clock import CpuClock, clock_for

DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [1, 5])
def test_every_call_is_timed_once_in_order_after_a_warm_up(device, count):
    calls = []
    times = clock_for(device).block(calls.append, count)
    assert len(times) == count
    assert calls[-count:] == list(range(count))
    warm_up = calls[:-count]
    assert warm_up
    assert set(warm_up) == {-1}


def test_times_are_microseconds():
    [time_us] = CpuClock().block(lambda _: time.sleep(0.02), 1)
    assert time_us >= 20_000


def test_only_the_call_is_timed():
    calls = iter([0.05, *[0.0] * 10_000])  # the first warm-up call alone is slow
    times = CpuClock().block(lambda _: time.sleep(next(calls)), 3)
    assert min(times) < 50_000


def test_an_exception_comes_through():
    def fail(_):
        raise LookupError

    with pytest.raises(LookupError):
        CpuClock().block(fail, 1)
