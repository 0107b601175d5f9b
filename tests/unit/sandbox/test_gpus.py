"""Visible GPUs of a process and their names."""

import pytest

from adaexplore.sandbox.gpus import VISIBLE, alone, physical
from adaexplore.sandbox.lock import lock_file


class TestPhysical:
    @pytest.mark.parametrize(
        ("visible", "device", "name"),
        [
            (None, "cuda:0", "0"),
            (None, "cuda:3", "3"),
            ("", "cuda:1", "1"),
            ("2,5", "cuda:0", "2"),
            ("2, 5", "cuda:1", "5"),
            ("GPU-8f3c,GPU-11aa", "cuda:1", "GPU-11aa"),
        ],
    )
    def test_the_physical_name_is_cudas(self, monkeypatch, visible, device, name):
        if visible is None:
            monkeypatch.delenv(VISIBLE, raising=False)
        else:
            monkeypatch.setenv(VISIBLE, visible)
        assert physical(device) == name


class TestAlone:
    def test_the_only_visible_gpu_is_the_first(self, monkeypatch):
        monkeypatch.setenv(VISIBLE, "4,6")
        device, environment = alone("cuda:1")
        assert (device, environment[VISIBLE]) == ("cuda:0", "6")

    def test_the_name_is_the_same_inside_such_a_process(self, monkeypatch):
        monkeypatch.setenv(VISIBLE, "4,6")
        device, environment = alone("cuda:1")
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert alone(device) == (device, environment)

    def test_the_cpu_needs_no_variables(self):
        assert alone("cpu") == ("cpu", {})


class TestOneLock:
    def test_all_names_of_a_gpu_share_one_lock(self, monkeypatch):
        monkeypatch.delenv(VISIBLE, raising=False)
        outside = lock_file("cuda:1")
        monkeypatch.setenv(VISIBLE, "1")
        assert lock_file("cuda:0") == outside
        assert lock_file("cuda:0") != lock_file("cpu")


class TestWorkers:
    def test_workers_see_the_gpus_of_the_caller(self, server, monkeypatch):
        monkeypatch.setenv(VISIBLE, "7")
        worker = server.spawn("worker_entries:act", name="worker")
        try:
            seen = worker.call({"do": "environment"}, 30.0)
            assert seen["os"][VISIBLE] == "7"
        finally:
            worker.end()

    def test_workers_see_the_gpus_of_their_environment(self, server, monkeypatch):
        monkeypatch.setenv(VISIBLE, "7")
        worker = server.spawn("worker_entries:act", name="worker", environment={VISIBLE: "3"})
        try:
            seen = worker.call({"do": "environment"}, 30.0)
            assert seen["os"][VISIBLE] == "3"
        finally:
            worker.end()
