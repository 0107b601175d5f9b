import textwrap

import pytest

from adaexplore.core.facts import OutputForm, ReferenceFacts
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.examine import job


def examined(forward, inputs="torch.randn(6, 5)"):
    source = f"""
    import torch
    from torch import nn

    class Model(nn.Module):
        def forward(self, x):
            return {forward}

    def get_inputs():
        return [{inputs}]
    """
    problem = Problem("task", textwrap.dedent(source), "triton", "cpu")
    return job({"problem": problem.to_json()})


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_reference_that_can_be_judged_comes_with_what_is_known_of_it():
    found = examined("torch.softmax(x, -1), x.argmax(-1)")
    assert found["why"] == ""
    facts = ReferenceFacts.from_json(found["facts"])
    assert facts.labels == {}
    assert facts.outputs == (
        OutputForm("output[0]", (6, 5), "float32"),
        OutputForm("output[1]", (6,), "int64"),
    )
    assert facts.parameters == 0


def test_what_hardly_depends_on_its_input_is_labelled():
    assert "constant" in examined("torch.ones_like(x) + 1e-12 * x")["facts"]["labels"]


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        ("x - float('inf')", "task.py: output is not finite"),
        ("torch.sqrt(-x.abs() - 1)", "task.py: output is NaN in 30 of 30 elements"),
        ("x + torch.rand_like(x)", "differs between two runs"),
        ("y", "line 7: forward() raised NameError"),
    ],
)
def test_what_cannot_be_judged_says_why(forward, why):
    assert why in examined(forward)["why"]
