"""Prompts that are written before a GPU has prepared their problems."""

import sys

import ahead
import pytest

from adaexplore.core.environment import Environment
from adaexplore.core.problem import Problem
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.facts import ReferenceFacts, ReferenceRoofline
from adaexplore.store import RunRecord, make_run

SOURCE = """\
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 4096, bias=False)

    def forward(self, x):
        return self.linear(x)

def get_inputs():
    return [torch.randn(1024, 2048)]
"""
RATES = {"fp32": 50e12, "tf32": 400e12, "half": 800e12}
ROOFLINE = ReferenceRoofline(1, 1, 1.0, "memory", 4e12, RATES, 7.0)
LIKE = RunRecord(
    problem=Problem("recorded", "class Model: ...", "triton", "cuda:0"),
    config=Config(),
    proposers=("manual",),
    environment=Environment(gpu="NVIDIA H200", compute_capability="9.0", triton="3.6.0"),
    command="",
    created_at=1.0,
    reference=ReferenceFacts(
        baselines_us={"eager": 123456.0}, labels={"collapsible": "of another"}, roofline=ROOFLINE
    ),
)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write the prompts of a campaign of one problem; return them by file."""
    make_run(tmp_path / "recorded", LIKE)
    (tmp_path / "layer.py").write_text(SOURCE)
    order = tmp_path / "order.toml"
    order.write_text(
        'proposer = "manual"\nlanguage = "triton"\nprecision = "tf32"\nturn_steps = 2\n'
        'p_strategy = 0.0\n\n[[problem]]\nfile = "layer.py"\n'
    )
    words = [str(order), str(tmp_path / "recorded"), "-o", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["ahead.py", *words])
    ahead.main()
    ahead.main()  # what is there already is written again, and nothing is added
    asks = tmp_path / "out" / "asks" / "layer"
    return {file.name: file.read_text() for file in asks.iterdir()}


def test_prompts_have_the_recorded_rates_and_the_problem_s_own_work(written):
    assert sorted(written) == ["1.1.md", "2.1.md"]
    for prompt in written.values():
        assert "NVIDIA H200" in prompt
        assert "# Triton 3.6.0" in prompt
        assert "copies at 4.00 TB/s" in prompt
        # 1024 x 2048 and 1024 x 4096 in fp32, 4096 x 2048 weights in 16 bits: 41.9 MB, 10.5 us;
        # 2 x 1024 x 2048 x 4096 operations at 800 TFLOP/s: 21.5 us
        assert "at least 41.9 MB" in prompt
        assert "the roofline is 21.5 µs, bound by compute" in prompt


def test_what_is_known_of_the_recorded_problem_alone_is_left_out(written):
    for prompt in written.values():
        assert "class Model(nn.Module)" in prompt
        assert "Times to beat" not in prompt
        assert "123" not in prompt
        assert "Collapsible" not in prompt
