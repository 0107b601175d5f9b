"""Facts about a reference that has not run."""

from pathlib import Path

import pytest

from adaexplore.core.problem import Checks, Problem
from adaexplore.core.verdict.facts import ReferenceFacts, ReferenceRoofline
from adaexplore.evaluate import counted_facts

LINEAR = """\
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1024, 512, bias=False), nn.ReLU())

    def forward(self, x):
        return self.layers(x)

def get_inputs():
    return [torch.randn(256, 1024)]
"""
BY_VALUES = LINEAR.replace("self.layers(x)", "torch.nonzero(x)")
RATES = {"fp32": 1e12, "tf32": 2e12, "half": 4e12}
RECORDED = ReferenceFacts(
    baselines_us={"eager": 1.0}, roofline=ReferenceRoofline(1, 1, 1.0, "memory", 1e9, RATES, 7.0)
)


def problem(source, precision):
    return Problem("layer", source, "triton", "cuda:0", checks=Checks(precision=precision))


@pytest.mark.parametrize(("precision", "weight_bytes"), [("fp32", 4), ("tf32", 2), ("half", 2)])
def test_the_roofline_is_that_of_the_shapes_at_the_recorded_rates(precision, weight_bytes):
    facts = counted_facts(problem(LINEAR, precision), RECORDED)
    size = 4 * 256 * 1024 + 4 * 256 * 512 + weight_bytes * 512 * 1024
    assert facts.roofline.bytes == size
    assert facts.roofline.flops == 2 * 256 * 512 * 1024
    assert facts.roofline.floor_us == pytest.approx(size / 1e3)
    assert facts.roofline.bytes_per_s == 1e9
    assert (facts.parameters, facts.layers) == (512 * 1024, 2)
    assert [out.shape for out in facts.outputs] == [(256, 512)]
    assert facts.baselines_us == {}


def test_nothing_is_known_of_a_reference_that_needs_values():
    assert counted_facts(problem(BY_VALUES, "tf32"), RECORDED) == ReferenceFacts(precision="tf32")


def test_the_sources_of_problems_are_not_left_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counted_facts(problem(LINEAR, "fp32"), RECORDED)
    assert list(Path.cwd().iterdir()) == []
