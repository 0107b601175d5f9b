"""Others may use a device while Inductor compiles, except while it times a kernel."""

import fcntl
import os

import pytest
import torch
import torch._inductor.compile_fx as inductor
from torch._dynamo.callback import CallbackTrigger, callback_handler
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.runtime import benchmarking
from torch._inductor.select_algorithm import AlgorithmSelectorCache

from adaexplore.evaluate.timing.baselines.compiling import TOO_LONG, compiling_lent
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.lock import device_lock, lock_file
from adaexplore.sandbox.process import WorkerDiedError

DEVICE = f"test-{os.getpid()}-compiling"


def is_free():
    """Return true if another could have the device alone now."""
    with lock_file(DEVICE).open() as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@pytest.mark.parametrize("exclusive", [False, True])
def test_the_device_is_lent_and_taken_back_for_timing(monkeypatch, exclusive):
    seen = []
    benchmarker = benchmarking.benchmarker

    def time_kernel(self):
        seen.append(("timing", is_free()))

    def compile_graph(with_options):
        seen.append(("compiling", is_free()))
        if with_options:  # the options of a mode are set by a call within the call
            return inductor.compile_fx(False)
        benchmarker.benchmark_gpu()
        return seen.append(("going on", is_free()))

    monkeypatch.setattr(inductor, "compile_fx", compile_graph)
    monkeypatch.setattr(type(benchmarker), "benchmark_gpu", time_kernel)
    with device_lock(DEVICE, exclusive=exclusive), compiling_lent(DEVICE):
        inductor.compile_fx(True)
        seen.append(("running", is_free()))
        inductor.compile_fx(False)
    assert seen == [
        ("compiling", True),
        ("compiling", True),
        ("timing", False),
        ("going on", True),
        ("running", False),
        ("compiling", True),  # the next graph
        ("timing", False),
        ("going on", True),
    ]
    assert inductor.compile_fx is compile_graph
    assert "benchmark_gpu" not in vars(benchmarker)


@pytest.mark.parametrize("exclusive", [False, True])
def test_the_device_is_lent_while_dynamo_traces_and_no_longer(exclusive):
    torch.compiler.reset()
    seen = []

    @torch.compiler.assume_constant_result
    def traced():
        seen.append(("tracing", is_free()))
        return 2

    def compile_graph(graph, _inputs):
        seen.append(("compiling", is_free()))

        def run(*args):
            seen.append(("running", is_free()))
            return graph(*args)

        return run

    @torch.compile(backend=compile_graph)
    def doubled(x):
        return x * traced()

    with device_lock(DEVICE, exclusive=exclusive):
        with compiling_lent(DEVICE):
            doubled(torch.ones(3))
        doubled(torch.ones(2))
    each = [("tracing", True), ("compiling", True), ("running", False)]
    assert seen == [*each, *((name, False) for name, _ in each)]


def test_a_recorded_graph_keeps_the_device():
    with device_lock(DEVICE, exclusive=False), compiling_lent(DEVICE):
        with callback_handler.install_callbacks(CallbackTrigger.CUDAGRAPH_RECORDING, "0"):
            assert not is_free()
        assert not is_free()


def test_what_is_reset_in_between_ends_as_well():
    with device_lock(DEVICE, exclusive=False), compiling_lent(DEVICE):
        torch.compiler.reset()
        assert not is_free()


def test_a_process_that_compiles_for_too_long_ends(server):
    with pytest.raises(WorkerDiedError) as died:
        run_job(server, "worker_entries:compile_for", {"limit_s": 0.2, "takes_s": 20.0}, 30.0)
    assert died.value.status == TOO_LONG


def test_time_that_is_no_compiling_does_not_count(server):
    request = {"limit_s": 0.5, "takes_s": 0.05, "times_s": 0.8, "runs_s": 0.6}
    assert run_job(server, "worker_entries:compile_for", request, 30.0) == {"done": True}


def test_templates_are_compiled_in_threads_and_other_kernels_in_the_pool(monkeypatch):
    seen = []

    def precompile(*choices):
        seen.append((choices, AsyncCompile.use_process_pool()))

    monkeypatch.setattr(AsyncCompile, "use_process_pool", classmethod(lambda _: True))
    monkeypatch.setattr(AlgorithmSelectorCache, "make_precompile_fn", precompile)
    with compiling_lent(DEVICE):
        AlgorithmSelectorCache.make_precompile_fn("a", "b")
        assert AsyncCompile.use_process_pool()
    assert seen == [(("a", "b"), False)]
    assert AlgorithmSelectorCache.make_precompile_fn is precompile
