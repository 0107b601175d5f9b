import os
import resource
import signal
import tempfile
from pathlib import Path

import pytest

from adaexplore.core.errors import InfrastructureError
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.process import ForkServer, WorkerDiedError, describe_exit

ENOUGH_S = 60.0


@pytest.fixture
def spawn(server):
    workers = []

    def spawn(entry="worker_entries:act", **options):
        workers.append(server.spawn(entry, name="worker", **options))
        return workers[-1]

    yield spawn
    for worker in workers:
        worker.kill()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def died(worker, request) -> WorkerDiedError:
    with pytest.raises(WorkerDiedError) as caught:
        worker.call(request, ENOUGH_S)
    return caught.value


class TestWorker:
    def test_a_worker_answers_repeated_calls(self, spawn):
        worker = spawn("worker_entries:echo")
        for number in range(3):
            assert worker.call({"number": number}, ENOUGH_S) == {"number": number}

    def test_a_worker_has_its_own_group_folder_and_signals(self, spawn):
        worker = spawn()
        seen = worker.call({"do": "surroundings"}, ENOUGH_S)
        assert seen["pid"] == seen["group"] == seen["session"] == worker.pid
        assert seen["folder"] == str(worker.folder)
        assert seen["interrupts"] == str(signal.SIG_DFL)

    def test_a_worker_holds_no_descriptor_but_its_channel(self, spawn):
        first = spawn()
        first.call({"do": "surroundings"}, ENOUGH_S)
        seen = spawn().call({"do": "surroundings"}, ENOUGH_S)["descriptors"]
        opened_to_look = 1
        assert len([fd for fd in seen if fd > 2]) == 1 + opened_to_look

    def test_a_worker_may_open_many_files(self, spawn):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        open_files = spawn().call({"do": "surroundings"}, ENOUGH_S)["open_files"]
        assert open_files == min(hard, 65_536) or hard == resource.RLIM_INFINITY

    def test_it_finds_torch_imported(self, spawn):
        assert spawn().call({"do": "surroundings"}, ENOUGH_S)["torch"]

    def test_many_workers_run_at_once(self, spawn):
        workers = [spawn("worker_entries:echo") for _ in range(20)]
        replies = [worker.call({"pid": worker.pid}, ENOUGH_S)["pid"] for worker in workers]
        assert len(set(replies)) == 20


class TestDeath:
    @pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
    def test_death_by_a_signal_is_reported(self, spawn, number):
        error = died(spawn(), {"do": "kill", "signal": number})
        assert error.status == -number
        assert signal.Signals(number).name in str(error)

    @pytest.mark.parametrize("code", [0, 7])
    def test_an_exit_is_reported(self, spawn, code):
        error = died(spawn(), {"do": "exit", "code": code})
        assert error.status == code

    def test_an_exception_is_in_the_log(self, spawn):
        error = died(spawn(), {"do": "raise"})
        assert error.status == 1
        assert "LookupError: nothing there" in error.log

    @pytest.mark.parametrize("deed", ["garble", "close"])
    def test_a_worker_without_its_channel_is_ended(self, spawn, deed, is_running):
        worker = spawn()
        error = died(worker, {"do": deed})
        assert error.status is None
        assert not is_running(worker.pid)

    def test_death_is_reported_at_every_call(self, spawn):
        worker = spawn()
        died(worker, {"do": "exit", "code": 7})
        assert worker.kill() == 7

    def test_other_workers_are_unaffected(self, spawn):
        other = spawn("worker_entries:echo")
        died(spawn(), {"do": "kill", "signal": signal.SIGSEGV})
        assert other.call({"still": "there"}, ENOUGH_S) == {"still": "there"}

    @pytest.mark.parametrize("status", [None, 0, 3, -9, -63])
    def test_every_exit_status_has_a_description(self, status):
        assert describe_exit(status).startswith("it ")


class TestTimeLimit:
    def test_all_descendants_are_ended(self, spawn, tmp_path, is_running, eventually):
        worker, pids = spawn(), tmp_path / "pids"
        with pytest.raises(TimeoutError):
            worker.call({"do": "hang_with_family", "pids": str(pids)}, 1.0)
        family = [int(pid) for pid in pids.read_text().split()]
        assert len(family) == 3
        assert eventually(lambda: not any(map(is_running, family)))

    def test_a_stopped_process_is_ended(self, spawn, is_running):
        worker = spawn()
        with pytest.raises(TimeoutError):
            worker.call({"do": "kill", "signal": signal.SIGSTOP}, 0.3)
        assert not is_running(worker.pid)

    def test_a_worker_that_does_not_read_is_ended(self, spawn, is_running):
        worker = spawn()
        worker.call({"do": "stop_reading"}, ENOUGH_S)
        with pytest.raises(TimeoutError):
            worker.call({"much": "x" * (8 << 20)}, 0.3)
        assert not is_running(worker.pid)

    def test_a_new_worker_can_be_ended(self, spawn, is_running):
        workers = [spawn() for _ in range(10)]
        for worker in workers:
            worker.kill()
        assert not any(is_running(worker.pid) for worker in workers)


class TestInnerWorkers:
    def test_a_trusted_worker_can_spawn_workers(self, spawn):
        inner = spawn("worker_entries:foreman", may_spawn=True).call({}, ENOUGH_S)
        assert inner["session"] == inner["pid"]

    def test_inner_workers_end_with_their_parent(self, spawn, is_running, eventually):
        foreman = spawn("worker_entries:foreman", may_spawn=True)
        inner = foreman.call({}, ENOUGH_S)["pid"]
        assert is_running(inner)
        foreman.kill()
        assert eventually(lambda: not is_running(inner))

    def test_other_workers_stay_alive(self, spawn):
        other = spawn("worker_entries:echo")
        foreman = spawn("worker_entries:foreman", may_spawn=True)
        foreman.call({}, ENOUGH_S)
        foreman.kill()
        assert other.call({"still": "there"}, ENOUGH_S) == {"still": "there"}


class TestStarting:
    def test_a_failing_preload_is_an_infrastructure_error_of_one_line(self):
        with pytest.raises(InfrastructureError, match=r"did not start: .*no_such_part") as caught:
            ForkServer.start(["json.no_such_part"])
        assert "\n" not in str(caught.value)

    def test_modules_that_are_not_installed_are_ignored(self):
        server = ForkServer.start(["no_such_package.anywhere"])
        worker = server.spawn("adaexplore.sandbox.jobs:serve", name="job")
        request = {"entry": "json:dumps", "request": {}}
        with pytest.raises(WorkerDiedError):  # a string is no reply
            worker.call(request, ENOUGH_S)
        server.close()
        assert not server.root.exists()

    def test_a_worker_has_its_own_copy_of_compiled_kernels(self, monkeypatch):
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        server = ForkServer.start(["worker_entries:leave_a_kernel"])
        code = """
import os, pathlib
kernel = pathlib.Path(os.environ["TRITON_CACHE_DIR"], "kernel")
result = kernel.read_text()
kernel.write_text("changed")
"""
        for _ in range(2):  # the second one's is not what the first one made of it
            worker = server.spawn("worker_entries:act", name="worker", confined="cpu")
            told = worker.call({"do": "python", "code": code}, ENOUGH_S)
            assert told["result"] == "compiled"
        server.close()

    @pytest.mark.parametrize("preload", [[], ["worker_entries:name_a_folder"]])
    def test_a_confined_worker_may_read_the_folder_of_a_preloaded_function(
        self, monkeypatch, preload
    ):
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        server = ForkServer.start(preload)
        worker = server.spawn("worker_entries:act", name="worker", confined="cpu")
        code = "import os\nresult = os.listdir('/var/lib') != []"
        reply = worker.call({"do": "python", "code": code}, ENOUGH_S)
        assert reply == (
            {"result": True} if preload else {"raised": "PermissionError", "errno": 13}
        )
        write = "open('/var/lib/adaexplore-test', 'w')"
        refused = worker.call({"do": "python", "code": write}, ENOUGH_S)["raised"]
        assert refused in ("PermissionError", "OSError")  # by Landlock, or a mount
        server.close()

    def test_seconds_in_which_a_worker_made_way_do_not_count(self, server):
        worker = server.spawn("worker_entries:act", name="worker", confined="cpu")
        slow = {"do": "python", "code": "import time\ntime.sleep(2)\nresult = 1"}
        worker.call({"do": "python", "code": "result = 1"}, ENOUGH_S)
        assert worker.call(slow, 1.0, make_way=lambda: 0.2)["result"] == 1
        with pytest.raises(TimeoutError):
            worker.call(slow, 1.0)

    def test_threads_that_a_confined_worker_creates_are_counted(self, server):
        worker = server.spawn("worker_entries:act", name="worker", confined="cpu")
        code = (
            "import threading\nfor _ in range(5): threading.Thread(target=int).start()\nresult = 1"
        )
        worker.call({"do": "python", "code": "result = 1"}, ENOUGH_S)
        before = worker.created_tasks
        worker.call({"do": "python", "code": code}, ENOUGH_S)
        assert worker.created_tasks == before + 5
        worker.kill()

    def test_ctrl_c_during_the_start_leaves_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(Channel, "receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ForkServer.start(["worker_entries:never_done"])
        assert list(tmp_path.iterdir()) == []

    def test_remains_of_killed_servers_are_removed(self, tmp_path, monkeypatch):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        pid_max = int(Path("/proc/sys/kernel/pid_max").read_text())
        left = tmp_path / f"adaexplore-{pid_max + 1}-abc"
        in_use = tmp_path / f"adaexplore-{os.getpid()}-abc"
        somebodys = tmp_path / "adaexplore-notes-abc"
        for folder in (left, in_use, somebodys):
            folder.mkdir()
        ForkServer.start().close()
        assert not left.exists()
        assert in_use.exists()
        assert somebodys.exists()

    def test_a_closed_server_is_an_infrastructure_error(self):
        server = ForkServer.start()
        server.close()
        with pytest.raises(InfrastructureError, match="no worker could be started"):
            server.spawn("worker_entries:echo", name="late")

    def test_a_killed_server_is_an_infrastructure_error(self):
        server = ForkServer.start()
        worker = server.spawn("worker_entries:act", name="orphan")
        os.kill(parent_of(worker.pid), signal.SIGKILL)
        with pytest.raises(InfrastructureError, match="is gone"):
            server.spawn("worker_entries:echo", name="late")
        server.close()
        assert not server.root.exists()


def test_a_workers_folder_is_nobody_elses(server):
    worker = server.spawn("worker_entries:echo", name="private")
    assert worker.folder.stat().st_mode & 0o777 == 0o700
    worker.kill()


def test_a_closed_server_leaves_no_zombie():
    server = ForkServer.start()
    worker = server.spawn("worker_entries:act", name="last")
    pid = parent_of(worker.pid)
    server.close()
    assert not Path(f"/proc/{pid}").exists()
