"""The published judge as a job, in this process and on the CPU."""

from contextlib import nullcontext

import pytest

from adaexplore.evaluate import published
from adaexplore.evaluate.published import OUT_OF_MEMORY, RUNS, judge, trimmed_mean

REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return self.layer(x)

def get_inputs():
    return [torch.randn(4, 8, dtype=torch.float64)]

def get_init_inputs():
    return [8]
"""
OWN = REFERENCE.replace("class Model", "class ModelNew")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def verdict(candidate):
    return judge({"reference": REFERENCE, "candidate": candidate, "device": "cpu"}, nullcontext)


def test_the_same_module_is_correct_and_timed_beside_eager():
    found = verdict(OWN)
    assert found["why"] == ""
    assert found["time_us"] > 0
    assert found["eager_us"] > 0


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        ("self.layer(x) + 0.04", ""),
        ("self.layer(x) + 0.5", "off by 0.5 at most"),
        ("self.layer(x)[:1]", "shape (1, 8) instead of (4, 8)"),
        ("nothing", "NameError: name 'nothing' is not defined"),
    ],
)
def test_a_result_is_right_within_5e_2(returned, why):
    found = verdict(OWN.replace("self.layer(x)", returned))
    assert found["why"] == why
    assert (found["time_us"] is None) == bool(why)


def test_a_result_must_be_right_on_each_of_five_inputs():
    later = "self.layer(x) + (0 if self.calls() < 5 else 1)"
    count = (
        "    def calls(self):\n        self.n = getattr(self, 'n', 0) + 1\n        return self.n\n"
    )
    source = OWN.replace("self.layer(x)", later).replace(
        "    def forward", f"{count}\n    def forward"
    )
    assert verdict(source)["why"] == "off by 1 at most"


def test_a_module_that_cannot_be_imported_is_wrong():
    assert verdict("class ModelNew(").get("why").startswith("SyntaxError")


def test_a_reference_that_cannot_be_run_so_gives_no_verdict():
    broken = REFERENCE.replace("return [8]", "return ['eight']")
    assert judge({"reference": broken, "candidate": OWN, "device": "cpu"}, nullcontext) == {}


@pytest.mark.parametrize(("device", "judged"), [("cpu", True), ("meta", False)])
def test_a_candidate_for_which_a_devices_memory_runs_out_gets_no_verdict(
    monkeypatch, device, judged
):
    monkeypatch.setattr(published, "_mean_us", lambda *_: 1.0)
    greedy = OWN.replace("return self.layer(x)", "raise torch.OutOfMemoryError")
    request = {"reference": REFERENCE, "candidate": greedy, "device": device}
    assert (judge(request, nullcontext) != OUT_OF_MEMORY) == judged


def test_the_mean_leaves_out_five_of_a_hundred_at_each_end():
    assert trimmed_mean([1.0] * 90 + [100.0] * 5 + [0.0] * 5) == 1.0
    assert trimmed_mean([1.0] * 90 + [101.0] * 6 + [1.0] * 4) > 1.0
    assert RUNS == 100
