import textwrap

import pytest

from adaexplore.core.problem import Problem
from adaexplore.core.verdict.facts import OutputForm, ReferenceFacts
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
        ("torch.sqrt(-x.abs() - 1)", "task.py: output is NaN in all of its 30 elements"),
        ("x + torch.rand_like(x)", "differs between two runs"),
        ("x + 1e-6 * torch.rand_like(x)", "forward() draws random numbers"),
        ("y", "line 7: forward() raised NameError"),
        ("x[x > 0]", "its size depends on the data; return one of a fixed size"),
        ("torch.stack([x.sum(), x.prod()]).nonzero(), x > 9, x.relu().nonzero()", "output[2] has"),
        ("x.to_sparse()", "output is a sparse tensor (sparse_coo)"),
        ("(x, 'rows')", "output[1] is a value of type str; return tensors"),
    ],
)
def test_what_cannot_be_judged_says_why(forward, why):
    assert why in examined(forward)["why"]


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr"])
def test_sparse_inputs_are_refused_in_one_line(form):
    why = examined("x.to_dense()", f"torch.eye(6).{form}()")["why"]
    assert "task.py: input tensor 0 of get_inputs() is a sparse tensor (sparse_c" in why
    assert "\n" not in why


@pytest.mark.parametrize(
    ("forward", "inputs", "dtypes"),
    [
        ("x * 2", "torch.randn(0, 5)", ["float32"]),
        ("x * 2, x[:0], len(x)", "torch.randn(6, 5)", ["float32", "float32", "int64"]),
        ("x * 2, x.sum().item(), True", "torch.randn(6, 5)", ["float32", "float64", "bool"]),
        ("x.to(torch.float8_e4m3fn)", "torch.randn(6, 50)", ["float8_e4m3fn"]),
        ("x.float() * 2", "torch.randn(6, 5).to(torch.float8_e4m3fn)", ["float32"]),
    ],
)
def test_ordinary_forms_are_judged(forward, inputs, dtypes):
    found = examined(forward, inputs)
    assert found["why"] == ""
    assert [out.dtype for out in ReferenceFacts.from_json(found["facts"]).outputs] == dtypes


def test_inputs_of_any_size_are_judged_at_the_first_and_say_so():
    found = examined("x.sum(0)", "torch.randn(int(torch.randint(4, 40, ())), 5)")
    facts = ReferenceFacts.from_json(found["facts"])
    assert (found["why"], len(facts.input_sets)) == ("", 9)
    assert "differ from draw to draw" in facts.notes[0]
