"""Resource limits. They are permanent for a process, so every test applies them to a worker."""

import errno

import pytest

from adaexplore.sandbox.walls.limits import ResourceLimits, clean_environment
from adaexplore.sandbox.walls.paths import log_of

MIB = 1 << 20


@pytest.fixture
def worker(server):
    workers = []

    def spawn(**options):
        workers.append(server.spawn("worker_entries:act", name="limited", **options))
        return workers[-1]

    yield spawn
    for worker in workers:
        worker.kill()


class TestFiles:
    def test_endless_output_is_bounded_and_raises_an_error(self, worker):
        spammer = worker(limits=ResourceLimits(file_bytes=4 * MIB))
        reply = spammer.call({"do": "spam", "megabytes": 10_000}, 60.0)
        assert reply == {"raised": "OSError", "errno": errno.EFBIG}
        assert log_of(spammer.folder).stat().st_size == 4 * MIB

    def test_other_workers_continue(self, worker):
        spammer, other = worker(limits=ResourceLimits(file_bytes=MIB)), worker()
        spammer.call({"do": "spam", "megabytes": 10_000}, 60.0)
        assert other.call({"do": "spam", "megabytes": 2}, 60.0) == {}

    def test_only_the_end_of_the_output_is_read_back(self, worker):
        spammer = worker(limits=ResourceLimits(file_bytes=8 * MIB))
        spammer.call({"do": "spam", "megabytes": 8}, 60.0)
        assert 0 < len(spammer.log_tail()) < MIB


class TestMemory:
    def test_an_allocation_past_the_limit_fails(self, worker):
        limited = worker(limits=ResourceLimits(memory_bytes=2048 * MIB))
        reply = limited.call({"do": "grow", "bytes": 4096 * MIB}, 60.0)
        assert reply["raised"] == "MemoryError"

    def test_an_allocation_below_the_limit_succeeds(self, worker):
        limited = worker(limits=ResourceLimits(memory_bytes=2048 * MIB))
        assert limited.call({"do": "grow", "bytes": 16 * MIB}, 60.0) == {"grown": 16 * MIB}


LIMITED = {"RLIMIT_DATA": "memory_bytes", "RLIMIT_FSIZE": "file_bytes"}


@pytest.mark.parametrize(("kind", "limit"), LIMITED.items())
def test_a_confined_worker_cannot_raise_its_limits(worker, kind, limit):
    code = f"""
import resource
_, hard = resource.getrlimit(resource.{kind})
resource.setrlimit(resource.{kind}, (hard, hard))
try:
    resource.setrlimit(resource.{kind}, (hard, resource.RLIM_INFINITY))
except (ValueError, OSError):
    pass
result = resource.getrlimit(resource.{kind})
"""
    limited = worker(confined="cpu", limits=ResourceLimits(**{limit: 2048 * MIB}))
    assert limited.call({"do": "python", "code": code}, 60.0) == {"result": [2048 * MIB] * 2}


class TestEnvironment:
    @pytest.mark.parametrize("view", ["os", "kernel"])
    def test_a_key_of_the_parent_is_invisible(self, worker, view):
        seen = worker().call({"do": "environment"}, 60.0)
        assert "OPENAI_API_KEY" not in seen[view]
        assert "sk-not-for-candidates" not in str(seen[view])

    def test_variables_of_compilers_are_passed_on(self, monkeypatch):
        monkeypatch.setenv("CXX", "/opt/bin/g++")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
        environment = clean_environment("/somewhere")
        assert environment["CXX"] == "/opt/bin/g++"
        assert environment["CUDA_VISIBLE_DEVICES"] == "3"

    def test_openmp_spins_briefly_unless_the_user_sets_it(self, monkeypatch):
        monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
        assert clean_environment("/somewhere")["GOMP_SPINCOUNT"] == "3000"
        monkeypatch.setenv("GOMP_SPINCOUNT", "infinity")
        assert clean_environment("/somewhere")["GOMP_SPINCOUNT"] == "infinity"

    def test_home_and_caches_are_in_the_workers_folder(self, worker):
        limited = worker()
        seen = limited.call({"do": "environment"}, 60.0)["os"]
        for name in ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
            assert seen[name].startswith(str(limited.folder))

    def test_a_caller_may_add_variables(self, worker):
        seen = worker(environment={"EXTRA": "yes"}).call({"do": "environment"}, 60.0)
        assert seen["os"]["EXTRA"] == "yes"
