import pytest

nvidia = pytest.importorskip("triton.backends.nvidia.driver")

from adaexplore.evaluate.kernels.build.triton_host import tune_briefly  # noqa: E402


def test_autotuners_without_times_of_their_own_are_brief(monkeypatch):
    monkeypatch.setattr(nvidia.CudaDriver, "get_benchmarker", None)
    tune_briefly()
    benchmarker = nvidia.CudaDriver.get_benchmarker(None)
    assert benchmarker.func.__name__ == "do_bench"
    assert 0 < benchmarker.keywords["warmup"] < benchmarker.keywords["rep"] < 100
