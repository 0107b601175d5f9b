"""Cores of a GPU's measurements: their choice, and which processes work on them."""

import os

import pytest

from adaexplore.sandbox import cores
from adaexplore.sandbox.cores import CORES, Shares, physical_cores, shares
from adaexplore.sandbox.gpus import alone, seen

DEVICE = "cuda:7"  # the lock alone is used
SIXTEEN = [frozenset({i, i + 16}) for i in range(16)]


class TestShares:
    def test_a_gpu_has_two_physical_cores_with_all_their_processors(self):
        found = shares(0, 1, SIXTEEN)
        assert found.measuring == {14, 15, 30, 31}
        assert found.other == set(range(32)) - {14, 15, 30, 31}

    @pytest.mark.parametrize(
        ("cores", "kept"), [(16, {12, 13, 14, 15}), (13, {10, 11, 12}), (8, {6, 7}), (7, None)]
    )
    def test_where_a_core_has_one_processor_there_are_more_cores(self, cores, kept):
        found = shares(0, 1, [frozenset({i}) for i in range(cores)])
        assert (found and found.measuring) == kept

    def test_gpus_have_cores_of_their_own_spread_over_the_machine(self):
        first, second = (shares(gpu, 2, SIXTEEN) for gpu in (0, 1))
        assert first.measuring == {6, 7, 22, 23}
        assert second.measuring == {14, 15, 30, 31}
        assert first.other == second.other == set(range(32)) - {6, 7, 14, 15, 22, 23, 30, 31}

    @pytest.mark.parametrize(("gpus", "count"), [(1, 7), (2, 15)])
    def test_a_small_machine_keeps_all_its_cores_for_all_work(self, gpus, count):
        assert shares(0, gpus, SIXTEEN[:count]) is None
        assert shares(0, gpus, SIXTEEN[: count + 1]) is not None


class TestPhysicalCores:
    @pytest.mark.parametrize("form", ["{0},{1}", "{0}-{1}"])
    def test_processors_of_one_core_are_together(self, tmp_path, form):
        for processor in range(4):
            pair = (processor // 2 * 2, processor // 2 * 2 + 1)
            folder = tmp_path / f"cpu{processor}/topology"
            folder.mkdir(parents=True)
            (folder / "thread_siblings_list").write_text(form.format(*pair) + "\n")
        assert physical_cores(range(4), tmp_path) == [{0, 1}, {2, 3}]
        assert physical_cores([1, 2, 3], tmp_path) == [{1}, {2, 3}]

    def test_where_nothing_is_known_each_processor_is_a_core(self, tmp_path):
        assert physical_cores([3, 1], tmp_path) == [{1}, {3}]


@pytest.fixture
def worker(server):
    """Return a worker for a GPU whose measurements have processor 1 of two."""
    given = Shares(frozenset({1}), frozenset({0}))
    worker = server.spawn(
        "worker_entries:hold_lock", name="holder", environment={CORES: str(given)}
    )
    yield worker
    worker.end()


@pytest.mark.skipif(not os.sched_getaffinity(0) >= {0, 1}, reason="needs processors 0 and 1")
class TestWhoHasTheCores:
    def test_a_worker_has_them_while_it_has_the_gpu_alone(self, worker, eventually):
        assert eventually(lambda: os.sched_getaffinity(worker.pid) == {0})
        worker.call({"device": DEVICE, "exclusive": True}, 30.0)
        assert os.sched_getaffinity(worker.pid) == {1}
        worker.call({"lend": True}, 30.0)
        assert os.sched_getaffinity(worker.pid) == {0}
        worker.call({}, 30.0)
        assert os.sched_getaffinity(worker.pid) == {1}
        worker.call({}, 30.0)
        assert os.sched_getaffinity(worker.pid) == {0}

    def test_who_shares_the_gpu_keeps_off(self, worker):
        worker.call({"device": DEVICE, "exclusive": False}, 30.0)
        assert os.sched_getaffinity(worker.pid) == {0}

    def test_a_candidate_has_them_in_the_body(self, worker, monkeypatch, eventually):
        assert eventually(lambda: os.sched_getaffinity(worker.pid) == {0})  # it has started
        monkeypatch.setenv(CORES, "1/0")
        with cores.measuring(worker.pid):
            assert os.sched_getaffinity(worker.pid) == {1}
        assert os.sched_getaffinity(worker.pid) == {0}

    def test_a_worker_hands_them_on(self, monkeypatch):
        monkeypatch.setenv(CORES, "1/0")
        assert alone("cuda:0")[1][CORES] == seen()[CORES] == "1/0"
