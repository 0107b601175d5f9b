"""Which of PyTorch's libraries a run of the reference uses."""

import pytest
import torch

from adaexplore.core.problem import Problem
from adaexplore.evaluate.truth import runs as runs_module
from adaexplore.evaluate.truth.device_memory.room import FreeMemory
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.sandbox.user.user_code import Instance

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}

    def forward(self, x):
        assert torch.backends.cudnn.enabled == {enabled}
        return x + 1

def get_inputs():
    return [torch.randn(2, 3, 8, 8)]
"""


@pytest.mark.parametrize(
    ("layer", "precision", "free", "enabled"),
    [
        ("nn.Conv2d(3, 4, 3)", "float64", 20, False),
        ("nn.Conv2d(3, 4, 3)", "float64", 19, True),  # cuDNN takes less memory
        ("nn.Conv2d(3, 4, 3)", "fp32", 20, True),
        ("nn.Sequential(nn.Conv2d(3, 4, 3), nn.GRU(3, 4))", "float64", 20, True),
    ],
)
def test_a_run_in_float64_convolves_without_cudnn(
    tmp_path, monkeypatch, layer, precision, free, enabled
):
    monkeypatch.setattr(runs_module, "room_on", lambda _: FreeMemory(free, 80))
    problem = Problem("example", SOURCE.format(layer=layer, enabled=enabled), "triton", "cpu")
    instance = Instance.of(problem, tmp_path)
    inputs = instance.inputs(0)
    runs = ReferenceRuns(problem, instance, inputs)
    outputs = runs.float64(inputs) if precision == "float64" else runs.run("fp32", inputs)
    assert outputs is not None
    assert torch.backends.cudnn.enabled
