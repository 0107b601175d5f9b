"""The timed process is a thread here; it has only the descriptor of its end."""

import os
import threading
import time

import pytest

from adaexplore.evaluate.timing.turnstile import on_host, protocol
from adaexplore.evaluate.timing.turnstile.on_host import HostGate, HostTurnstile
from adaexplore.evaluate.timing.turnstile.protocol import MissedPassageError
from adaexplore.sandbox.walls.limits import allow_many_files


@pytest.fixture
def turnstile():
    return HostTurnstile()


@pytest.fixture
def gate(turnstile):
    return HostGate(turnstile.other_end)


def test_inputs_are_opened_when_the_outputs_of_the_call_before_were_looked_at(turnstile, gate):
    events = []

    def opened(i):
        events.append(("opened", i))
        return 100 + i

    with turnstile.attended(3, opened, lambda i, _: events.append(("left", i))):
        for i in range(3):
            gate.enter(i)
            events.append(("call", i))
        gate.leave()
    assert events == [(name, i) for i in range(3) for name in ("opened", "call", "left")]


def test_every_call_has_a_window_by_the_judge_s_clock(turnstile, gate):
    def slowly(i):
        time.sleep(0.03)
        return 0

    with turnstile.attended(2, slowly) as passages:
        gate.enter(0)
        gate.enter(0)
        time.sleep(0.02)
        gate.leave()
    first_us, second_us = passages.windows_us
    assert first_us < 20_000 < second_us
    assert passages.between_us >= 60_000


def test_passages_are_attended_to_on_the_processors_of_the_thread_that_asks(turnstile, gate):
    before, seen = os.sched_getaffinity(0), []

    def opened(i):
        seen.append(os.sched_getaffinity(0))
        return 0

    try:
        with turnstile.attended(1, opened, asking=threading.get_native_id()):
            os.sched_setaffinity(0, {max(before)})
            gate.enter(0)
            gate.leave()
    finally:
        os.sched_setaffinity(0, before)
    assert seen == [{max(before)}]


def test_a_judge_may_hold_thousands_of_open_files():
    allow_many_files()
    held = [os.dup(0) for _ in range(1024)]
    try:
        many = HostTurnstile()
        with pytest.raises(MissedPassageError), many.attended(1, lambda i: 0):
            pass
    finally:
        for descriptor in held:
            os.close(descriptor)


class TestWork:
    def passages(self, turnstile, gate, used):
        def slowly(i):
            time.sleep(0.03)
            return 0

        with turnstile.attended(1, slowly, used=used) as passages:
            gate.enter(0)
            gate.leave()
        return passages.worked_us

    def test_cpu_time_while_inputs_are_opened_is_work(self, turnstile, gate):
        looks = iter([100.0, 100.0, 7_100.0])
        assert self.passages(turnstile, gate, lambda: next(looks)) == [7_000.0]

    def test_no_more_than_the_time_that_it_took_is_work(self, turnstile, gate):
        looks = iter([100.0, 100.0, 1e9])
        [worked_us] = self.passages(turnstile, gate, lambda: next(looks))
        assert 30_000.0 <= worked_us < 1e9

    def test_threads_may_fall_asleep_before(self, turnstile, gate, monkeypatch):
        monkeypatch.setattr(on_host, "_SETTLING_S", 60.0)
        looks = iter([100.0, 150.0, 160.0, 160.0, 160.0])
        assert self.passages(turnstile, gate, lambda: next(looks)) == [0.0]

    def test_threads_that_do_not_are_not_waited_for(self, turnstile, gate):
        start = time.perf_counter()
        [worked_us] = self.passages(turnstile, gate, lambda: 1e6 * (time.perf_counter() - start))
        assert worked_us >= 30_000.0


def enter(gate, calls):
    for _ in range(calls):
        gate.enter(0)


@pytest.mark.parametrize("calls", [0, 2])
def test_a_process_that_does_not_pass_after_every_call_is_noticed(turnstile, gate, calls):
    with pytest.raises(MissedPassageError), turnstile.attended(2, lambda _: 0):
        enter(gate, calls)


def test_a_judge_that_takes_long_after_the_last_call_has_missed_nothing(
    turnstile, gate, monkeypatch
):
    monkeypatch.setattr(protocol, "_LAST_S", 0.05)
    seen = []

    def left(i, _):
        time.sleep(0.3)
        seen.append(i)

    with turnstile.attended(2, lambda _: 0, left):
        enter(gate, 2)
        gate.leave()
    assert seen == [0, 1]


def test_a_process_that_closes_its_end_is_noticed(turnstile):
    with pytest.raises(MissedPassageError), turnstile.attended(2, lambda _: 0):
        turnstile.forget_other_end()


def test_failing_to_open_ends_the_wait_of_the_process_and_is_what_is_raised(turnstile, gate):
    def fails(_):
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"), turnstile.attended(2, fails):
        gate.enter(0)


def test_an_exception_of_the_body_comes_through(turnstile):
    with pytest.raises(LookupError), turnstile.attended(2, lambda _: 0):
        raise LookupError


def test_what_was_asked_before_a_block_gets_no_more_than_its_calls(turnstile, gate):
    os.write(turnstile.other_end, b"?" * 50)
    opened = []
    with turnstile.attended(2, lambda i: opened.append(i) or 0):
        gate.enter(0)
    assert opened == [0, 1]


def test_the_ends_are_closed_with_the_turnstile():
    turnstile = HostTurnstile()
    descriptor = turnstile.other_end
    del turnstile
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
