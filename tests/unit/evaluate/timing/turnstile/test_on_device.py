"""A thread plays the device of the timed process, or a GPU does its work."""

import os
import threading
import time
from statistics import median

import pytest
import torch

from adaexplore.evaluate.timing.turnstile import on_device, protocol
from adaexplore.evaluate.timing.turnstile.on_device import DeviceTurnstile
from adaexplore.evaluate.timing.turnstile.protocol import MissedPassageError, gate_for
from adaexplore.evaluate.timing.turnstile.slots import sums_over


@pytest.fixture
def turnstile():
    return DeviceTurnstile()


class Played:
    """A process and its device, which pass `calls` times; `work` is done in each call."""

    def __init__(self, turnstile, calls, work=lambda i: None, *, queued=True):
        self.page = on_device._page(turnstile.other_end)
        self.keys = []
        self._calls, self._work, self._queued = calls, work, queued
        self._thread = threading.Thread(target=self._run)

    def start(self):
        self._thread.start()

    def end(self):
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _run(self):
        for i in range(self._calls):
            self.page[on_device._AT_GATE] = i + 1
            if self._queued:
                self.page[on_device._QUEUED] = i + 1
            self._wait(on_device._ADMITTED, i)
            self.page[on_device._WAITING] = i + 1
            self._wait(on_device._OPENED, i)
            self.keys.append(self.page[on_device._KEY])
            self._work(i)
            self.page[on_device._SUM] = -i - 1
            self.page[on_device._CLOSED] = i + 1

    def _wait(self, word, i):
        while self.page[word] <= i:
            time.sleep(0)


def attend(turnstile, count, played, opened=lambda _: 1, after_start=lambda: None):
    with turnstile.attended(count, opened):
        played.start()
        after_start()
        played.end()


def test_keys_are_opened_when_the_outputs_of_the_call_before_were_looked_at(turnstile):
    events = []

    def opened(i):
        events.append(("opened", i))
        return (1 << 63) - 1 - i

    played = Played(turnstile, 3, lambda i: events.append(("call", i)))
    with turnstile.attended(3, opened, lambda i, _: events.append(("left", i))):
        played.start()
        played.end()
    assert events == [(name, i) for i in range(3) for name in ("opened", "call", "left")]
    assert played.keys == [(1 << 63) - 1 - i for i in range(3)]


def test_a_window_is_the_time_of_the_device(turnstile):
    played = Played(turnstile, 2, lambda i: time.sleep(0.03 * i))
    with turnstile.attended(2, lambda _: time.sleep(0.02) or 1) as passages:
        played.start()
        played.end()
    first_us, second_us = passages.windows_us
    assert first_us < 20_000 < 30_000 <= second_us
    assert passages.between_us >= 40_000


@pytest.mark.parametrize("word", [on_device._AT_GATE, on_device._WAITING])
def test_the_time_until_a_process_asks_is_known_for_every_call_but_the_first(turnstile, word):
    class Late(Played):
        def _wait(self, awaited, i):
            super()._wait(awaited, i)
            if awaited == on_device._ADMITTED and word == on_device._WAITING:
                time.sleep(0.03)

        def _run(self):
            for i in range(self._calls):
                if word == on_device._AT_GATE:
                    time.sleep(0.03)
                self.page[on_device._AT_GATE] = self.page[on_device._QUEUED] = i + 1
                self._wait(on_device._ADMITTED, i)
                self.page[on_device._WAITING] = i + 1
                self._wait(on_device._OPENED, i)
                self.page[on_device._CLOSED] = i + 1

    passages = {}
    for kind in (Played, Late):
        played = kind(turnstile, 5)
        with turnstile.attended(5, lambda _: 1) as passages[kind]:
            played.start()
            played.end()
    assert len(passages[Late].entering_us) == len(passages[Played].entering_us) == 4
    assert median(passages[Late].entering_us) > median(passages[Played].entering_us) + 10_000


def test_every_call_has_the_sum_that_came_with_its_notice(turnstile):
    played = Played(turnstile, 3)
    with turnstile.attended(3, lambda _: 1) as passages:
        played.start()
        played.end()
    assert passages.sums == [-1, -2, -3]


def test_a_call_that_waits_for_its_inputs_on_the_host_gets_them(turnstile):
    played = Played(turnstile, 2, queued=False)
    with turnstile.attended(2, lambda _: 1) as passages:
        played.start()
        played.end()
    assert len(passages.windows_us) == 2


def test_a_call_may_be_enqueued_as_long_as_its_head_start_lasts(turnstile):
    played, began = Played(turnstile, 2, queued=False), time.perf_counter()
    with turnstile.attended(2, lambda _: 1, head_start_s=0.1):
        played.start()
        played.end()
    assert time.perf_counter() - began > 0.2


def test_a_second_block_begins_from_the_start(turnstile):
    for calls in (3, 1):
        played = Played(turnstile, calls)
        with turnstile.attended(calls, lambda i: 10 + i):
            played.start()
            played.end()
        assert played.keys == [10 + i for i in range(calls)]


def test_a_process_that_does_not_pass_after_every_call_is_noticed(turnstile, monkeypatch):
    monkeypatch.setattr(protocol, "_LAST_S", 0.05)
    played = Played(turnstile, 1)
    with pytest.raises(MissedPassageError):
        attend(turnstile, 2, played)


def test_a_judge_that_takes_long_after_the_last_call_has_missed_nothing(turnstile, monkeypatch):
    monkeypatch.setattr(protocol, "_LAST_S", 0.05)
    played, seen = Played(turnstile, 2), []

    def left(i, _):
        time.sleep(0.3)
        seen.append(i)

    with turnstile.attended(2, lambda _: 1, left):
        played.start()
        played.end()
    assert seen == [0, 1]


def test_a_process_that_goes_on_slowly_after_its_reply_does_not_hold_the_judge(
    turnstile, monkeypatch
):
    monkeypatch.setattr(protocol, "_LAST_S", 0.2)
    played = Played(turnstile, 20, lambda _: time.sleep(0.1))
    with pytest.raises(MissedPassageError), turnstile.attended(20, lambda _: 1):
        played.start()
    played.end()


def test_a_long_window_lengthens_one_other_at_most(turnstile):
    played = Played(turnstile, 5, lambda i: time.sleep(0.0 if i else 0.4))
    with turnstile.attended(5, lambda _: 1) as passages:
        played.start()
        played.end()
    assert max(passages.windows_us[2:]) < 200_000


def test_after_a_long_window_the_judge_is_no_longer_asleep_than_the_process_is_there(turnstile):
    def raises_in_the_second_call():
        while len(played.keys) < 2:
            time.sleep(0.01)
        raise MemoryError("no room")

    played = Played(turnstile, 2, lambda _: time.sleep(1.0))
    began = time.monotonic()
    with pytest.raises(MemoryError):
        attend(turnstile, 2, played, after_start=raises_in_the_second_call)
    assert time.monotonic() - began < 1.6
    played.end()


def test_words_that_are_far_ahead_do_not_hold_the_judge(turnstile, monkeypatch):
    monkeypatch.setattr(protocol, "_LAST_S", 0.05)
    with pytest.raises(MissedPassageError), turnstile.attended(2, lambda _: 1):
        on_device._page(turnstile.other_end)[on_device._CLOSED] = 1 << 40


@pytest.mark.parametrize("by", ["judge", "body"])
def test_after_an_exception_the_device_waits_for_nothing(turnstile, by):
    def fails(_):
        raise MemoryError("no room")

    played = Played(turnstile, 5)
    opened, raised = (fails, lambda: None) if by == "judge" else (lambda _: 1, lambda: fails(0))
    with pytest.raises(MemoryError, match="no room"):
        attend(turnstile, 5, played, opened, raised)
    played.end()


def test_the_ends_are_closed_with_the_turnstile():
    turnstile = DeviceTurnstile()
    descriptor = turnstile.other_end
    del turnstile
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.fixture
def gate(turnstile):
    """The end of a process that has loaded all kernels which it calls."""
    loaded = torch.zeros(2, device="cuda:0").clone()
    loaded[1] = 2
    torch.zeros(2, pin_memory=True).copy_(loaded, non_blocking=True)
    torch.cuda._sleep(1)
    torch.cuda.synchronize()
    return gate_for("cuda:0", turnstile.other_end)


def sums_of_nothing(count):
    return sums_over([[]] * count, torch.device("cuda:0"))


@pytest.mark.gpu
class TestGate:
    def test_the_device_does_a_call_between_the_key_and_the_notice(self, turnstile, gate):
        outputs = torch.zeros(3, pin_memory=True)
        counter = torch.zeros(3, device="cuda:0")
        seen, sums = [], sums_over([[counter]] * 3, counter.device)

        with turnstile.attended(
            3, lambda i: 5 + i, lambda *_: seen.append(outputs.tolist())
        ) as passages:
            for i in range(3):
                gate.enter(i)
                torch.cuda._sleep(200_000_000)
                counter[i] = i + 1
                outputs.copy_(counter, non_blocking=True)
                gate.delivered(i, sums)
            gate.leave()
            enqueued = len(passages.windows_us)
            torch.cuda.synchronize()
        assert enqueued < 3
        assert seen == [[1, 0, 0], [1, 2, 0], [1, 2, 3]]
        assert min(passages.windows_us) > 80_000

    def test_the_key_is_what_the_device_reads_when_it_is_opened(self, turnstile, gate):
        from adaexplore.evaluate.timing.turnstile.seals import cache_key_of

        found, sums = [], sums_of_nothing(2)
        with turnstile.attended(2, lambda i: (1 << 62) + i):
            for i in range(2):
                gate.enter(i)
                found.append(cache_key_of(torch.device("cuda:0")).key.clone())
                gate.delivered(i, sums)
            torch.cuda.synchronize()
        assert [int(key) for key in found] == [(1 << 62) + i for i in range(2)]

    @pytest.mark.parametrize("early", [False, True])
    def test_a_notice_brings_the_sum_over_the_outputs_that_are_there(self, turnstile, gate, early):
        from adaexplore.evaluate.timing.turnstile.sums import sum_of

        outputs = torch.zeros(3, 100_000, device="cuda:0")
        keys = [(1 << 62) + i for i in range(3)]
        sums = sums_over([[output] for output in outputs], outputs.device)
        outputs[0].add_(0)  # loads the kernel
        torch.cuda.synchronize()
        with turnstile.attended(3, lambda i: keys[i]) as passages:
            for i in range(3):
                gate.enter(i)
                if early:
                    gate.delivered(i, sums)
                torch.cuda._sleep(2_000_000)
                outputs[i].add_(i + 1)
                if not early:
                    gate.delivered(i, sums)
            gate.leave()
            torch.cuda.synchronize()
        there = [sum_of([outputs[i]], keys[i], outputs.device) for i in range(3)]
        matching = [told == found for told, found in zip(passages.sums, there, strict=True)]
        assert matching == [not early] * 3

    def test_a_call_that_synchronizes_gets_its_inputs(self, turnstile, gate):
        sums = sums_of_nothing(2)
        with turnstile.attended(2, lambda _: 1) as passages:
            for i in range(2):
                gate.enter(i)
                torch.cuda.synchronize()
                gate.delivered(i, sums)
            torch.cuda.synchronize()
        assert len(passages.windows_us) == 2
