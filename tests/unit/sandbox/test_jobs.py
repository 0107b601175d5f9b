import pytest

from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.walls.limits import ResourceLimits


class TestRunJob:
    def test_a_job_returns_its_result(self, server):
        assert run_job(server, "worker_entries:double", {"number": 21}, 30.0) == {"doubled": 42}

    def test_an_exception_is_a_crash_with_its_traceback_in_the_log(self, server):
        with pytest.raises(WorkerDiedError) as caught:
            run_job(server, "worker_entries:fail", {}, 30.0)
        assert caught.value.status == 1
        assert "LookupError: no such thing" in caught.value.log

    def test_an_unknown_entry_is_a_crash(self, server):
        with pytest.raises(WorkerDiedError, match="exited with code 1"):
            run_job(server, "worker_entries:nothing_of_the_kind", {}, 30.0)

    def test_a_job_beyond_its_time_limit_is_ended(self, server):
        with pytest.raises(TimeoutError):
            run_job(server, "worker_entries:sleep", {}, 0.2)

    def test_limits_are_enforced(self, server):
        limits = ResourceLimits(memory_bytes=1 << 20)
        with pytest.raises(WorkerDiedError):
            run_job(server, "worker_entries:grow_large", {}, 30.0, limits=limits)

    def test_the_folder_of_a_job_is_removed(self, server):
        before = set(server.root.iterdir())
        run_job(server, "worker_entries:double", {"number": 1}, 30.0)
        with pytest.raises(TimeoutError):
            run_job(server, "worker_entries:sleep", {}, 0.1)
        assert set(server.root.iterdir()) == before
