"""The device lock between processes; every holder is a process."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from adaexplore.sandbox.device_log import DEVICE_LOG
from adaexplore.sandbox.lock import (
    device_lent,
    device_lock,
    has_other_judges,
    is_wanted,
    join_judges,
    large_turn,
    lock_file,
    make_lock_files,
    stand_back,
    waited_s,
)
from device_locks import is_free

SHARED, EXCLUSIVE = False, True
DEVICE = f"test-{os.getpid()}"


@pytest.fixture
def holder(server):
    """Start a process that requests the lock; return true if it gets it in time."""
    workers = []

    def start(exclusive, device=DEVICE):
        worker = server.spawn("worker_entries:hold_lock", name="holder")
        workers.append(worker)
        return lambda timeout_s: _asked(worker, device, exclusive, timeout_s)

    yield start
    for worker in workers:
        worker.kill()


def _asked(worker, device, exclusive, timeout_s):
    return worker.call({"device": device, "exclusive": exclusive}, timeout_s)["held"]


class TestDeviceLock:
    def test_several_processes_may_share_the_lock(self, holder):
        assert holder(SHARED)(30.0)
        assert holder(SHARED)(30.0)

    @pytest.mark.parametrize(("first", "second"), [(EXCLUSIVE, EXCLUSIVE), (EXCLUSIVE, SHARED)])
    def test_an_exclusive_lock_excludes_others(self, holder, first, second):
        assert holder(first)(30.0)
        with pytest.raises(TimeoutError):
            holder(second)(0.3)

    def test_a_shared_lock_excludes_an_exclusive_one(self, holder):
        assert holder(SHARED)(30.0)
        with pytest.raises(TimeoutError):
            holder(EXCLUSIVE)(0.3)

    def test_later_shared_requests_queue_behind_an_exclusive_one(self, server, holder):
        first = server.spawn("worker_entries:hold_lock", name="holder")
        assert _asked(first, DEVICE, SHARED, 30.0)
        waiting = holder(EXCLUSIVE)
        with ThreadPoolExecutor(2) as threads:
            alone = threads.submit(waiting, 30.0)
            time.sleep(0.5)
            late = threads.submit(holder(SHARED), 1.0)
            assert isinstance(late.exception(), TimeoutError)
            first.kill()
            assert alone.result()

    def test_a_lent_lock_is_free_for_others(self, server, holder):
        worker = server.spawn("worker_entries:hold_lock", name="holder")
        assert _asked(worker, DEVICE, EXCLUSIVE, 30.0)
        assert worker.call({"lend": True}, 30.0) == {"held": False}
        other = server.spawn("worker_entries:hold_lock", name="holder")
        assert _asked(other, DEVICE, EXCLUSIVE, 30.0)
        with pytest.raises(TimeoutError):
            worker.call({}, 0.3)
        other.kill()

    @pytest.mark.parametrize("held", [SHARED, EXCLUSIVE])
    def test_who_has_lent_a_device_takes_it_alone_as_others_do(self, held):
        with device_lock(DEVICE, exclusive=held):
            with device_lent(DEVICE):
                with device_lock(DEVICE, exclusive=EXCLUSIVE):
                    assert not is_free(lock_file(DEVICE))
                assert is_free(lock_file(DEVICE))
            assert is_free(lock_file(DEVICE)) == (held == SHARED)
            assert not is_wanted(DEVICE)
        assert is_free(lock_file(DEVICE))

    def test_the_lock_of_the_cpu_is_not_lent(self, server, holder):
        wants = holder(SHARED, device="cpu")
        with device_lock("cpu", exclusive=True), device_lent("cpu"), pytest.raises(TimeoutError):
            wants(0.3)

    def test_who_stands_back_lets_those_who_wait_go_first(self):
        order = []

        def time_alone():
            with device_lock(DEVICE, exclusive=True):
                order.append("alone")

        with ThreadPoolExecutor(1) as threads, device_lock(DEVICE, exclusive=False):
            assert not is_wanted(DEVICE)
            waiting = threads.submit(time_alone)
            while not is_wanted(DEVICE):
                time.sleep(0.01)
            assert not order
            stand_back(DEVICE)
            order.append("shared")
            waiting.result(30.0)
            assert not is_wanted(DEVICE)
        assert order == ["alone", "shared"]

    def test_who_has_a_device_alone_is_not_asked_for_it(self):
        with device_lock(DEVICE, exclusive=True):
            assert not is_wanted(DEVICE)
        assert not is_wanted(DEVICE)

    def test_large_work_is_done_in_turn_and_lends_the_device_while_it_waits(self):
        order = []

        def large():
            with device_lock(DEVICE, exclusive=False), large_turn(DEVICE), large_turn(DEVICE):
                order.append("second")

        with ThreadPoolExecutor(1) as threads:
            with large_turn(DEVICE):
                waiting = threads.submit(large)
                time.sleep(0.2)
                with device_lock(DEVICE, exclusive=True):
                    order.append("first")
            waiting.result(30.0)
        assert order == ["first", "second"]

    def test_the_time_that_a_thread_waits_adds_up(self):
        before_s, held = waited_s(), threading.Event()

        def hold():
            with device_lock(DEVICE, exclusive=True), large_turn(DEVICE):
                held.set()
                time.sleep(0.4)
            return waited_s()

        with ThreadPoolExecutor(1) as threads:
            holding = threads.submit(hold)
            held.wait(30.0)
            with device_lock(DEVICE, exclusive=False):
                pass
            assert holding.result() < 0.2
        assert 0.2 < waited_s() - before_s < 30.0

    def test_the_lock_is_reentrant(self):
        with device_lock(DEVICE, exclusive=True), device_lock(DEVICE, exclusive=False):
            pass
        with device_lock(DEVICE, exclusive=False), device_lock(DEVICE, exclusive=False):
            pass
        with device_lock(DEVICE, exclusive=True):
            pass

    def test_devices_have_separate_locks(self, holder):
        assert holder(EXCLUSIVE)(30.0)
        assert holder(EXCLUSIVE, device=f"{DEVICE}-other")(30.0)

    def test_the_lock_is_free_after_release(self, server, holder):
        worker = server.spawn("worker_entries:hold_lock", name="holder")
        assert _asked(worker, DEVICE, EXCLUSIVE, 30.0)
        assert worker.call({}, 30.0) == {"held": False}
        assert holder(EXCLUSIVE)(30.0)
        worker.kill()

    def test_the_lock_is_free_after_its_holder_is_killed(self, server, holder):
        worker = server.spawn("worker_entries:hold_lock", name="holder")
        assert _asked(worker, DEVICE, EXCLUSIVE, 30.0)
        worker.kill()
        assert holder(EXCLUSIVE)(30.0)


def test_holds_and_waits_are_logged_where_a_folder_is_named(tmp_path, monkeypatch, server):
    with device_lock(DEVICE, exclusive=True):
        assert not list(tmp_path.iterdir())
    monkeypatch.setenv(DEVICE_LOG, str(tmp_path))
    with device_lock("cpu", exclusive=True):
        assert not list(tmp_path.iterdir())
    with device_lock(DEVICE, exclusive=True), device_lent(DEVICE):
        time.sleep(0.1)
    logged = {file.name: file.read_text().splitlines() for file in tmp_path.iterdir()}
    held, waited = (logged[f"{kind}.{os.getpid()}"] for kind in ("held", "waited"))
    for _, seconds, exclusive, calls in map(json.loads, (*held, *waited)):
        assert seconds < 0.1
        assert exclusive
        assert calls == []  # this test is no part of the package
    assert len(held) == len(waited) == 2


def test_a_judge_sees_others_of_its_device_until_they_end(server):
    def join(device):
        worker = server.spawn("worker_entries:join_judges", name="judge")
        return worker, worker.call({"device": device}, 30.0)["others"]

    first, others = join(DEVICE)
    assert not others
    elsewhere, others = join(f"{DEVICE}-other")
    assert not others
    second, others = join(DEVICE)
    assert others
    assert first.call({}, 30.0) == {"others": True}
    assert elsewhere.call({}, 30.0) == {"others": False}
    second.kill()
    assert first.call({}, 30.0) == {"others": False}
    first.kill()
    elsewhere.kill()


def test_all_files_of_a_device_are_made_for_those_who_may_make_none(tmp_path, monkeypatch):
    monkeypatch.setenv("ADAEXPLORE_LOCKS", str(tmp_path))
    made = make_lock_files("new")
    assert set(tmp_path.iterdir()) == set(made)
    with device_lock("new", exclusive=True), large_turn("new"):
        join_judges("new")
        assert not has_other_judges("new")
    assert set(tmp_path.iterdir()) == set(made)
