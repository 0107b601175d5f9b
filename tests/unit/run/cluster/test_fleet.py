"""The devices of a process: who gets which, and what becomes of those that are lost or slow."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from adaexplore.core.errors import BadInputError, ClusterGoneError, InfrastructureError
from adaexplore.run.cluster import fleet as fleet_module
from adaexplore.run.cluster.fleet import Fleet, ToughWorkError
from adaexplore.run.cluster.known_times import KnownTimes
from adaexplore.run.cluster.remote import DeviceLostError
from adaexplore.sandbox.process import WorkerDiedError

ENOUGH_S = 20.0


class Fake:
    """A device in this process; `times_us` are those of its canary, the last one for ever."""

    def __init__(self, name, times_us=(100.0,), kind="H100", begin=lambda: None, seats=1):
        self.name, self.id, self.kind, self.seats = name, name, kind, seats
        self.begin = begin
        self.times_us = list(times_us)
        self.killed = threading.Event()

    def canary_us(self):
        if self.killed.is_set():
            raise DeviceLostError(f"{self.name} is gone")
        return self.times_us.pop(0) if len(self.times_us) > 1 else self.times_us[0]

    def call(self, method, *arguments, timeout_s=0.0):
        return method

    def kill(self):
        self.killed.set()


class Rack:
    """A cluster of fakes; `make` gives one after the other, and then what never begins."""

    address = "rack:6379"

    def __init__(self, *devices):
        self.devices = list(devices)
        self.times = KnownTimes()
        self.longest_us = self.times.note
        self.has_head = True
        self.left = threading.Event()

    def answers(self):
        return self.has_head

    def leave(self):
        self.left.set()

    def make(self):
        if self.devices:
            return self.devices.pop(0)
        none = Fake("none")
        none.begin = lambda: (none.killed.wait(), _lost())
        return none


def _lost():
    raise DeviceLostError("the cluster has no room")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(fleet_module, "_PAUSES_S", (0.0,))
    monkeypatch.setattr(fleet_module, "_RESTART_S", 0.01)


@pytest.fixture
def fleet_of():
    made = []

    def fleet_of(*devices, wanted=1, patience_s=ENOUGH_S, rest_s=ENOUGH_S):
        made.append(Fleet(Rack(*devices), patience_s, rest_s))
        made[-1].want(wanted)
        return made[-1]

    yield fleet_of
    for fleet in made:
        fleet.close()


@pytest.fixture
def told():
    return []


def name_of(device):
    return device.name


def test_threads_have_a_device_each(fleet_of, told):
    fleet = fleet_of(Fake("a"), Fake("b"), wanted=2)
    together = threading.Barrier(2, timeout=ENOUGH_S)

    def work(device):
        together.wait()
        return device.name

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: fleet.timed(work, told.append), range(2)))
    assert sorted(found) == ["a", "b"]
    assert told == []


def test_a_preferred_device_is_taken_if_it_is_free(fleet_of, told, eventually):
    a, b = Fake("a"), Fake("b")
    fleet = fleet_of(a, b, wanted=2)
    assert eventually(lambda: {fleet.timed(name_of, told.append) for _ in range(2)} == {"a", "b"})
    assert [fleet.timed(name_of, told.append, b) for _ in range(3)] == ["b"] * 3


def test_work_goes_where_least_is_done_as_far_as_there_are_seats(fleet_of, told, eventually):
    fleet = fleet_of(Fake("a", seats=2), Fake("b", seats=2), wanted=2)
    assert eventually(lambda: {fleet.timed(name_of, told.append) for _ in range(2)} == {"a", "b"})
    full, end = threading.Barrier(5, timeout=ENOUGH_S), threading.Event()

    def work(device):
        full.wait()
        end.wait(ENOUGH_S)
        return device.name

    with ThreadPoolExecutor(5) as threads:
        four = [threads.submit(fleet.timed, work, told.append) for _ in range(4)]
        full.wait()
        fifth = threads.submit(fleet.timed, name_of, told.append)
        time.sleep(0.1)
        assert not fifth.done()
        end.set()
        assert sorted(each.result() for each in four) == ["a", "a", "b", "b"]
        assert fifth.result() in ("a", "b")


def test_of_work_on_a_lost_device_only_that_which_took_it_down_is_given_up(fleet_of, told):
    """Whoever notices first."""
    fleet = fleet_of(*(Fake(str(number), seats=4) for number in range(20)))

    def deadly(device):
        time.sleep(0.1)  # the others are there too
        device.kill()
        time.sleep(0.1)  # and notice first
        raise DeviceLostError(f"{device.name} is gone")

    def harmless(device):
        if device.killed.wait(0.3):
            raise DeviceLostError(f"{device.name} is gone")
        return device.name

    with ThreadPoolExecutor(4) as threads:
        tough = threads.submit(fleet.timed, deadly, told.append)
        others = [threads.submit(fleet.timed, harmless, told.append) for _ in range(3)]
        assert all(each.result(ENOUGH_S) for each in others)
        assert isinstance(tough.exception(ENOUGH_S), ToughWorkError)
    assert len(told) <= 4  # a line for each device that it took down


def test_who_waits_for_a_device_alone_is_not_passed_by(fleet_of, told, eventually):
    fleet = fleet_of(Fake("a", seats=2), Fake("b", seats=2), wanted=2)
    assert eventually(lambda: {fleet.timed(name_of, told.append) for _ in range(2)} == {"a", "b"})
    on_each, end, done = threading.Barrier(2, timeout=ENOUGH_S), threading.Event(), []

    def first(_):
        on_each.wait()
        return end.wait(ENOUGH_S)

    def lost(device):
        if not done:
            done.append("lost")
            on_each.wait()
            raise DeviceLostError(f"{device.name} is gone")
        done.append("alone")

    with ThreadPoolExecutor(3) as threads:
        working = threads.submit(fleet.timed, first, told.append)
        again = threads.submit(fleet.timed, lost, told.append)
        assert eventually(lambda: fleet._waiting_alone)
        late = threads.submit(fleet.timed, lambda _: done.append("late"), told.append)
        time.sleep(0.1)
        assert done == ["lost"]
        end.set()
        for each in (working, again, late):
            each.result(ENOUGH_S)
    assert done == ["lost", "alone", "late"]


def test_seats_of_a_slow_device_stay_taken_until_their_work_is_over(fleet_of, told, eventually):
    slow = Fake("a", [100.0], seats=2)
    fleet = fleet_of(slow, rest_s=0.05)
    begun, end = threading.Semaphore(0), threading.Event()

    def long(_):
        begun.release()
        end.wait(ENOUGH_S)

    with ThreadPoolExecutor(4) as threads:
        old = threads.submit(fleet.untimed, long, told.append)
        assert begun.acquire(timeout=ENOUGH_S)
        slow.times_us = [500.0]
        new = [threads.submit(fleet.timed, long, told.append) for _ in range(2)]
        assert eventually(lambda: fleet._resting)
        slow.times_us = [100.0]
        assert begun.acquire(timeout=ENOUGH_S)
        assert not begun.acquire(timeout=0.2)  # of two seats, one is the old work's
        end.set()
        for each in (old, *new):
            each.result(ENOUGH_S)
    assert fleet._taken == {slow: 0}


def test_a_job_beside_other_work_has_a_device_that_is_lost_replaced(fleet_of, told):
    fleet = fleet_of(Fake("a"), Fake("b"))

    def job(device):
        if device.name == "a":
            raise DeviceLostError("a is gone")
        return device.name

    assert fleet.beside(job) == "b"


def test_a_device_whose_processes_end_at_its_start_is_tried_again(fleet_of, told):
    def begin():
        raise WorkerDiedError(None, "")

    assert fleet_of(Fake("a", begin=begin), Fake("b")).timed(name_of, told.append) == "b"


def test_work_of_a_lost_device_is_done_elsewhere_and_said(fleet_of, told):
    fleet = fleet_of(Fake("a"), Fake("b"))

    def work(device):
        if device.name == "a":
            raise DeviceLostError("a is gone")
        return device.name

    assert fleet.timed(work, told.append) == "b"
    assert told == ["a is gone; its work begins again on another device"]


def test_a_device_that_is_slow_times_nothing_until_it_is_not(fleet_of, told, eventually):
    slow, fast = Fake("slow", [100.0, 200.0]), Fake("fast", [100.0])
    fleet = fleet_of(slow, wanted=1, rest_s=0.05)
    eventually(lambda: slow.times_us == [200.0])  # it began
    fleet._cluster.devices.append(fast)
    fleet.want(2)
    assert [fleet.timed(name_of, told.append) for _ in range(3)] == ["fast"] * 3
    [line] = told
    assert line.startswith("slow is too slow and times nothing until that ends: its canary took")
    assert "\n" not in line
    slow.times_us = [100.0]
    assert eventually(lambda: fleet.timed(name_of, told.append, slow) == "slow")


def test_a_time_is_dropped_if_its_device_became_slow_meanwhile(fleet_of, told):
    fleet = fleet_of(Fake("a", [100.0, 100.0, 500.0]), Fake("b"), wanted=2)
    assert {fleet.timed(name_of, told.append) for _ in range(4)} == {"b"}


def test_work_that_takes_every_device_down_ends(fleet_of, told):
    fleet = fleet_of(*(Fake(name) for name in "abcdef"))

    def work(device):
        raise DeviceLostError(f"{device.name} is gone")

    with pytest.raises(ToughWorkError, match="3 devices failed at the same work: c is gone"):
        fleet.timed(work, told.append)
    assert fleet.timed(name_of, told.append) == "d"


@pytest.mark.parametrize(
    ("devices", "why"),
    [([], "none is free"), ([Fake("a", [100.0, 300.0])], "a is too slow")],
    ids=["none", "a slow one"],
)
def test_without_a_device_it_is_one_line(fleet_of, told, devices, why):
    fleet = fleet_of(*devices, patience_s=0.2)
    with pytest.raises(ClusterGoneError) as caught:
        fleet.timed(name_of, told.append)
    assert str(caught.value).startswith("no device of the Ray cluster at rack:6379 came within 0.2")
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_machine_that_cannot_judge_says_so(fleet_of, told):
    def begin():
        raise BadInputError("node-7 has adaexplore 0.0.1")

    with pytest.raises(BadInputError, match="node-7"):
        fleet_of(Fake("a", begin=begin)).timed(name_of, told.append)


def test_another_kind_is_left_out(fleet_of, told, eventually):
    other = Fake("b", kind="L4")
    fleet = fleet_of(Fake("a"))
    assert fleet.timed(name_of, told.append) == "a"
    fleet._cluster.devices.append(other)
    fleet.want(2)
    assert eventually(other.killed.is_set)
    assert fleet.timed(name_of, told.append) == "a"


def test_closing_ends_the_devices_and_those_who_wait(fleet_of, told):
    device = Fake("a")
    fleet = fleet_of(device)

    def work(device):
        device.killed.wait(ENOUGH_S)
        raise DeviceLostError("a is gone")

    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(fleet.timed, work, told.append) for _ in range(2)]
        time.sleep(0.1)
        fleet.close()
        for each in both:
            assert isinstance(each.exception(ENOUGH_S), InfrastructureError)


def test_a_device_that_comes_while_all_is_given_back_is_given_back_too():
    device, asked, closed = Fake("a"), threading.Event(), threading.Event()
    rack = Rack()

    def make():
        asked.set()
        closed.wait(ENOUGH_S)
        return device

    rack.make = make
    fleet = Fleet(rack, ENOUGH_S)
    fleet.want(1)
    assert asked.wait(ENOUGH_S)
    fleet.close()
    closed.set()
    assert device.killed.wait(ENOUGH_S)


@pytest.mark.parametrize("begins", [True, False], ids=["at work", "waiting for a device"])
def test_all_work_ends_in_one_line_where_the_head_is_gone(fleet_of, told, monkeypatch, begins):
    monkeypatch.setattr(fleet_module, "_LOOK_S", 0.01)
    monkeypatch.setattr(fleet_module, "_SILENCE_S", 0.05)
    fleet = fleet_of(*[Fake("a")] * begins)
    head = fleet._cluster

    def work(_):
        head.has_head = False
        assert head.left.wait(ENOUGH_S)  # by which a call that waits for its device ends
        raise DeviceLostError("a is gone")

    head.has_head = begins
    for _ in range(2):
        with pytest.raises(ClusterGoneError, match=r"the head of the Ray .* rack:6379 is gone"):
            fleet.timed(work, told.append)
    assert told == []


def test_a_head_that_is_silent_for_a_while_ends_nothing(fleet_of, told, monkeypatch):
    monkeypatch.setattr(fleet_module, "_LOOK_S", 0.01)
    looks = iter([False] * 20)
    fleet = fleet_of(Fake("a"))
    asked = threading.Event()

    def answers():
        found = next(looks, True)
        if found:
            asked.set()
        return found

    fleet._cluster.answers = answers
    assert asked.wait(ENOUGH_S)
    assert fleet.timed(name_of, told.append) == "a"
