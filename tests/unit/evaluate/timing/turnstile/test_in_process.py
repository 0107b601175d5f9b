import time

import pytest
import torch

from adaexplore.evaluate.timing.turnstile.protocol import own_ends
from adaexplore.evaluate.timing.turnstile.seals import cache_key_of
from adaexplore.evaluate.timing.turnstile.slots import sums_over


def test_both_ends_on_the_cpu_belong_together():
    turnstile, gate = own_ends("cpu")
    opened = []
    with turnstile.attended(2, lambda i: opened.append(i) or 0) as passages:
        for i in range(2):
            gate.enter(i)
            gate.delivered(i)
        gate.leave()
    assert opened == [0, 1]
    assert len(passages.windows_us) == 2


@pytest.mark.gpu
class TestOnDevice:
    def times(self, body, unseal=lambda: None):
        turnstile, gate = own_ends("cuda:0")
        body()
        sums = sums_over([[torch.zeros(5000, device="cuda:0")]] * 4, torch.device("cuda:0"))
        torch.cuda.synchronize()
        opened = []
        with turnstile.attended(4, lambda i: opened.append(i) or 1) as passages:
            for i in range(4):
                gate.enter(i, (), unseal)
                body()
                gate.delivered(i, sums)
            gate.leave()
        assert opened == [0, 1, 2, 3]
        return passages.windows_us

    def test_a_window_is_the_time_of_the_device(self):
        assert min(self.times(lambda: torch.cuda._sleep(20_000_000))) > 8_000

    def test_the_device_does_not_wait_for_the_host(self):
        x = torch.randn(16, device="cuda:0")
        assert min(self.times(lambda: [x + 1 for _ in range(3)])) < 150

    def test_the_head_start_of_a_call_begins_when_its_unsealing_is_enqueued(self):
        assert min(self.times(lambda: None, unseal=lambda: time.sleep(0.002))) < 1000

    def test_a_call_that_synchronizes_gets_its_inputs(self):
        assert len(self.times(torch.cuda.synchronize)) == 4

    def test_every_call_gets_its_own_key_however_late_the_device_takes_it(self):
        device = torch.device("cuda:0")
        turnstile, gate = own_ends("cuda:0")
        sums = sums_over([[torch.zeros(5000, device=device)]] * 4, device)
        key, keys = cache_key_of(device).key, torch.zeros(4, dtype=torch.int64, device=device)
        torch.cuda.synchronize()
        with turnstile.attended(4, lambda i: 100 + i):
            for i in range(4):
                gate.enter(i, (), lambda i=i: keys[i : i + 1].copy_(key))
                gate.delivered(i, sums)
                torch.cuda._sleep(20_000_000)  # as if another process had a time slice
            gate.leave()
        assert keys.tolist() == [100, 101, 102, 103]

    def test_an_exception_comes_through_and_leaves_nothing_waiting(self):
        turnstile, gate = own_ends("cuda:0")
        with pytest.raises(LookupError), turnstile.attended(2, lambda _: 1):  # noqa: PT012
            gate.enter(0)
            raise LookupError
        torch.cuda.synchronize()
