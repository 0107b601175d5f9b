"""The lock works between processes, so every holder here is one."""

import os

import pytest

SHARED, EXCLUSIVE = False, True
DEVICE = f"test-{os.getpid()}"


@pytest.fixture
def holder(server):
    """Starts a process that asks for the lock; `True` once it has it within the given time."""
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
    def test_sharing_is_possible(self, holder):
        assert holder(SHARED)(30.0)
        assert holder(SHARED)(30.0)

    @pytest.mark.parametrize(("first", "second"), [(EXCLUSIVE, EXCLUSIVE), (EXCLUSIVE, SHARED)])
    def test_exclusive_keeps_others_out(self, holder, first, second):
        assert holder(first)(30.0)
        with pytest.raises(TimeoutError):
            holder(second)(0.3)

    def test_sharers_keep_exclusive_out(self, holder):
        assert holder(SHARED)(30.0)
        with pytest.raises(TimeoutError):
            holder(EXCLUSIVE)(0.3)

    def test_devices_have_locks_of_their_own(self, holder):
        assert holder(EXCLUSIVE)(30.0)
        assert holder(EXCLUSIVE, device=f"{DEVICE}-other")(30.0)

    def test_it_is_free_again_when_given_back(self, server, holder):
        worker = server.spawn("worker_entries:hold_lock", name="holder")
        assert _asked(worker, DEVICE, EXCLUSIVE, 30.0)
        assert worker.call({}, 30.0) == {"held": False}
        assert holder(EXCLUSIVE)(30.0)
        worker.kill()

    def test_it_is_free_again_when_its_holder_is_killed(self, server, holder):
        worker = server.spawn("worker_entries:hold_lock", name="holder")
        assert _asked(worker, DEVICE, EXCLUSIVE, 30.0)
        worker.kill()
        assert holder(EXCLUSIVE)(30.0)
