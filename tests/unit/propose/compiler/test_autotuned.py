from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch._inductor.runtime.benchmarking import benchmarker
from torch._inductor.select_algorithm import TritonTemplateCaller

from adaexplore.propose.compiler import autotuned
from adaexplore.propose.compiler.autotuned import run_and_autotune
from adaexplore.propose.compiler.graph import trace
from adaexplore.propose.compiler.inductor import LoweringOptions, lower


def test_a_wrapper_runs_though_its_weights_want_gradients(monkeypatch):
    """The wrapper writes into buffers with `out=`, which autograd refuses."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    model = nn.Linear(8, 4)
    assert model.weight.requires_grad
    with torch.no_grad():
        traced = trace(model, (torch.randn(2, 8),), {}, ["input"])
        lowered = lower(traced, LoweringOptions())
    assert torch.is_grad_enabled()
    assert "out=" in lowered.source
    assert run_and_autotune(lowered, traced) == {}  # no Triton kernel on the CPU


def choice(*shapes):
    nodes = [SimpleNamespace(get_size=lambda shape=shape: shape) for shape in shapes]
    return SimpleNamespace(input_nodes=nodes)


@pytest.mark.parametrize(
    ("shapes", "time_ms"),
    [
        (([8, 64, 32, 32], [64, 1, 5, 5]), float("inf")),  # depthwise
        (([8, 64, 32, 32], [96, 16, 3, 3]), float("inf")),  # four groups
        (([8, 64, 32, 32], [96, 64, 3, 3]), 1.0),
        (([128, 64], [64, 32]), 1.0),  # a matrix product
        (([4, 128, 64], [4, 64, 32]), 1.0),  # a batch of them
    ],
)
def test_templates_of_grouped_convolutions_are_never_timed(monkeypatch, shapes, time_ms):
    monkeypatch.setattr(TritonTemplateCaller, "benchmark", lambda *_: 1.0)
    autotuned.skip_grouped_convolution_templates.__wrapped__()
    assert TritonTemplateCaller.benchmark(choice(*shapes)) == time_ms


def test_a_benchmark_holds_the_device_alone(monkeypatch):
    kind = type(benchmarker)
    held = []

    def lock(device, *, exclusive):
        held.append((device, exclusive))
        return torch.no_grad()  # any context manager

    monkeypatch.setattr(autotuned, "device_lock", lock)
    monkeypatch.setattr(kind, "benchmark_gpu", lambda *_: "timed")
    autotuned.lock_benchmarks.__wrapped__("cuda:1")
    assert benchmarker.benchmark_gpu(print) == "timed"
    assert held == [("cuda:1", True)]
