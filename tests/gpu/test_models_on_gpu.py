"""Whole models on a GPU: the ways in which they are run and timed."""

import pytest
import torch
from torch import nn

from adaexplore.model.calls import calls_of
from adaexplore.model.graphs import capture_call
from adaexplore.model.placements import Placements
from adaexplore.model.ways import Stopwatch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]


class Asking(nn.Module):
    """A module that does other work where its stream is being captured."""

    def forward(self, x):
        return x + 2 if torch.cuda.is_current_stream_capturing() else x + 1


def run_of(model):
    return lambda call: model(*call.args, **call.kwargs)


def test_a_captured_call_has_the_operations_of_an_eager_one(shared_gpu):
    [call] = calls_of([(torch.zeros(8, device="cuda"),)])
    with torch.no_grad():
        captured = capture_call(run_of(Asking()), call, "cuda:0")
        captured.call.args[0].fill_(5)
        captured()
    assert captured.outputs.tolist() == [6.0] * 8
    assert torch.cuda.is_current_stream_capturing() is False


class Waiting(nn.Module):
    """A module that waits for the device, so that nothing captures it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        return self.linear(x) * x.sum().item()


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_cannot_be_captured_is_timed_in_the_other_ways():
    model = Waiting().cuda().eval()
    calls = calls_of([(torch.randn(64, 64, device="cuda"),)])
    watch = Stopwatch(model, calls, Placements(model), "fp32", "cuda:0")
    with torch.no_grad():
        found = watch.fastest(())
        speedup, [time_us] = watch.ratio(found, found)
    assert "eager" in found.times_us[0]
    assert "cuda graph" not in found.times_us[0]
    assert time_us > 0
    assert 0.8 < speedup.median < 1.25
