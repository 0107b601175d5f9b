"""Limits of a confined worker with its descendants; a violation ends them."""

import os
import time
from pathlib import Path

import pytest

from adaexplore.sandbox.process import ForkServer
from adaexplore.sandbox.walls.limits import ResourceLimits
from adaexplore.sandbox.walls.paths import log_of
from adaexplore.sandbox.watchdog import LimitExceededError

ENOUGH_S = 60.0
MIB = 1 << 20


@pytest.fixture
def worker(server):
    workers = []

    def worker(**limits):
        limits = ResourceLimits(**limits)
        workers.append(
            server.spawn("worker_entries:act", name="watched", confined="cpu", limits=limits)
        )
        return workers[-1]

    yield worker
    for each in workers:
        each.kill()


def run(worker, code, fds=()):
    return worker.call({"do": "python", "code": code}, ENOUGH_S, fds)["result"]


def overrun(worker, code) -> LimitExceededError:
    started = time.monotonic()
    with pytest.raises(LimitExceededError) as caught:
        run(worker, code)
    assert time.monotonic() - started < ENOUGH_S / 2
    return caught.value


SLEEPERS = """
import threading, time
for _ in range({}):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
result = "started"
"""
TASKS = {
    "threads": SLEEPERS.format(100),
    "children": "import os, time\nfor _ in range(100):\n    if os.fork() == 0: time.sleep(600)",
    "orphans in sessions of their own": """
import os, time
for _ in range(100):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        os._exit(0)
    os.wait()
time.sleep(600)
""",
    "a bomb": "import os, time\nfor _ in range(8): os.fork()\ntime.sleep(600)",
}


class TestTasks:
    @pytest.mark.parametrize("how", TASKS)
    def test_too_many_processes_end_the_worker(self, worker, how, is_running):
        bomb = worker(tasks=40)
        error = overrun(bomb, TASKS[how])
        assert error.resource == "processes"
        assert str(error) == "more than 40 processes and threads at once"
        assert not is_running(bomb.pid)

    def test_no_process_of_a_fork_bomb_survives(self, worker, tmp_path, is_running):
        bomb = worker(tasks=40)
        code = """
import os, time
for _ in range(8):
    print(os.getpid(), flush=True)
    os.fork()
time.sleep(600)
"""
        overrun(bomb, code)
        pids = {int(word) for word in log_of(bomb.folder).read_text().split()}
        assert len(pids) > 5
        assert not any(map(is_running, pids))

    def test_processes_below_the_limit_are_allowed(self, worker):
        assert run(worker(tasks=40), SLEEPERS.format(20)) == "started"

    def test_many_sequential_processes_are_allowed(self, worker):
        code = """
import threading, subprocess
for _ in range(100):
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
for _ in range(20):
    subprocess.run(["true"], check=True)
result = "done"
"""
        assert run(worker(tasks=40), code) == "done"


MEMORY = {
    "private": "kept = b'x' * (600 << 20)",
    "shared": """
import mmap
shared = mmap.mmap(-1, 600 << 20)
for _ in range(600):
    shared.write(bytes(1 << 20))
""",
    "of children": """
import os, time
for _ in range(4):
    if os.fork() == 0:
        break
else:
    time.sleep(600)
kept = b'x' * (150 << 20)
""",
}


class TestMemory:
    @pytest.mark.parametrize("how", MEMORY)
    def test_too_much_memory_ends_the_worker(self, worker, how):
        error = overrun(
            worker(total_bytes=400 * MIB), MEMORY[how] + "\nimport time; time.sleep(600)"
        )
        assert (error.resource, str(error)) == ("memory", "more than 0.391 GiB of memory in all")

    def test_a_thread_started_after_a_child_does_not_hide_the_child(self, worker):
        code = """
import os, threading, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.read(reader, 1)
    kept = b'x' * (600 << 20)
    time.sleep(600)
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
os.write(writer, b"!")
time.sleep(600)
"""
        assert overrun(worker(total_bytes=400 * MIB), code).resource == "memory"

    def test_memory_of_the_fork_server_hides_none_of_the_worker(self, monkeypatch):
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        server = ForkServer.start(["worker_entries:hold_memory"])
        try:
            watched = server.spawn(
                "worker_entries:act",
                name="watched",
                confined="cpu",
                limits=ResourceLimits(total_bytes=400 * MIB),
            )
            overrun(watched, MEMORY["private"] + "\nimport time; time.sleep(600)")
        finally:
            server.close()

    def test_memory_shared_by_children_counts_once(self, worker):
        code = """
import os, time
kept = b'x' * (200 << 20)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(600)
time.sleep(1)
result = "done"
"""
        assert run(worker(total_bytes=400 * MIB), code) == "done"

    def test_memory_passed_to_the_worker_does_not_count(self, worker):
        fd = os.memfd_create("given")
        os.truncate(fd, 600 * MIB)
        code = """
import mmap, time
shared = mmap.mmap(fds[0], 600 << 20)
for _ in range(600):
    shared.write(bytes(1 << 20))
time.sleep(0.5)
result = "done"
"""
        assert run(worker(total_bytes=400 * MIB), code, [fd]) == "done"
        os.close(fd)


DISK = {
    "files": """
for i in range(1000):
    with open(f"file-{i}", "wb") as file:
        file.write(bytes(4 << 20))
""",
    "files that are removed but open": """
import os
kept = []
for i in range(1000):
    kept.append(open("file", "wb"))
    kept[-1].write(bytes(4 << 20))
    os.remove("file")
""",
    "reserving": """
import os
for i in range(1000):
    with open(f"file-{i}", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 4 << 20)
""",
}


class TestDisk:
    @pytest.mark.parametrize("how", DISK)
    def test_too_much_data_on_disk_ends_the_worker(self, worker, how):
        error = overrun(worker(folder_bytes=64 * MIB), DISK[how] + "\nimport time; time.sleep(600)")
        assert (error.resource, str(error)) == ("disk", "wrote more than 0.0625 GiB to disk")

    def test_files_below_the_limit_are_allowed(self, worker):
        code = """
import time
for i in range(8):
    with open(f"file-{i}", "wb") as file:
        file.write(bytes(4 << 20))
time.sleep(0.5)
result = "done"
"""
        assert run(worker(folder_bytes=64 * MIB), code) == "done"


class TestEnding:
    def test_an_ended_worker_with_live_descendants_is_noticed_at_once(self, worker, is_running):
        code = """
import os, time
child = os.fork()
if child == 0:
    os.setsid()
    time.sleep(600)
os._exit(3)
"""
        watched = worker()
        started = time.monotonic()
        with pytest.raises(RuntimeError, match="exited with code 3"):
            run(watched, code)
        assert time.monotonic() - started < ENOUGH_S / 2
