"""A request that hangs ends its worker soon; one that compiles or goes on does not."""

import time

import pytest

from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.stall import StallWatch

QUIET_S = 1.5
ENOUGH_S = 60.0
WRITING = """
import time
for i in range(15):
    time.sleep(0.2)
    open(f"kernel_{i}.cubin", "w").close()
"""
COMPILING = """
import subprocess, sys
busy = "import time; end = time.monotonic() + 3\\nwhile time.monotonic() < end: pass"
subprocess.run([sys.executable, "-c", busy])
"""


@pytest.fixture
def worker(server):
    worker = server.spawn("worker_entries:act", name="worker")
    yield worker
    worker.kill()


def ask(watch, worker, code):
    with watch.request():
        return worker.call({"do": "python", "code": code}, ENOUGH_S)


@pytest.mark.parametrize("code", ["import time; time.sleep(600)", "while True: pass"])
def test_a_hanging_request_ends_its_worker_soon(worker, code):
    began = time.monotonic()
    with StallWatch(worker.pid, worker.folder, QUIET_S, worker.kill) as watch:
        with pytest.raises(WorkerDiedError):
            ask(watch, worker, code)
        assert watch.stalled
    assert time.monotonic() - began < ENOUGH_S / 2


@pytest.mark.parametrize("code", [WRITING, COMPILING], ids=["files appear", "a child is at work"])
def test_a_request_that_compiles_goes_on(worker, code):
    with StallWatch(worker.pid, worker.folder, QUIET_S, worker.kill) as watch:
        ask(watch, worker, code)
        assert not watch.stalled


def test_time_between_requests_does_not_count(worker):
    with StallWatch(worker.pid, worker.folder, 0.3, worker.kill) as watch:
        time.sleep(1.0)
        ask(watch, worker, "pass")
        assert not watch.stalled


def test_time_in_which_the_worker_is_stopped_does_not_count(worker):
    with StallWatch(worker.pid, worker.folder, 1.0, worker.kill) as watch:
        with watch.request(), watch.paused():
            time.sleep(2.5)
        ask(watch, worker, "pass")
        assert not watch.stalled
