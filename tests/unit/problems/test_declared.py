"""Workloads, tolerances and labels that a problem's file declares, read and not run."""

from dataclasses import replace

import pytest

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Checks, Likeness, Problem, Tolerance, Workload
from adaexplore.problems import load_problem
from adaexplore.problems.declared import Declared, with_declared

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x.relu()

def rows(count):
    return [torch.randn(count, 8)]
"""
DECLARED = Declared(
    (Workload("short", "rows(2)"), Workload("long", "rows(3)", timed=False)),
    (Tolerance(1e-2, 1e-3, "SomeBench", 0.9),),
    (("uniform-inputs", "drawn between 0 and 1"),),
    (Likeness(0.95, 0.05, 0.1, "SomeBench"),),
)


@pytest.fixture
def load(tmp_path):
    def load(text, **options):
        (tmp_path / "relu.py").write_text(text)
        return load_problem(tmp_path / "relu.py", device="cpu", language="cpp", **options)

    return load


def test_what_is_written_is_read_back(load):
    strict = Tolerance(1e-5, 0.0, "the user")
    problem = load(with_declared(MODEL, DECLARED), checks=Checks("half", tolerances=(strict,)))
    assert problem.workloads == DECLARED.workloads
    assert problem.checks == Checks(
        "half", tolerances=(strict, *DECLARED.tolerances), likenesses=DECLARED.likenesses
    )
    assert problem.labels == DECLARED.labels
    assert Problem.from_json(problem.to_json()) == problem


def test_without_declarations_nothing_is_written_and_inputs_are_wanted(load):
    assert with_declared(MODEL, Declared()) == MODEL
    with pytest.raises(BadProblemError, match="defines no get_inputs"):
        load(with_declared(MODEL, Declared(tolerances=DECLARED.tolerances)))


def test_labels_decide_no_verdict_and_the_rest_does(load):
    problem = load(with_declared(MODEL, DECLARED))
    assert replace(problem, labels=()).digest == problem.digest
    assert replace(problem, workloads=problem.workloads[:1]).digest != problem.digest
    assert replace(problem, checks=Checks()).digest != problem.digest
    unlike = replace(problem.checks, likenesses=())
    assert replace(problem, checks=unlike).digest != problem.digest


@pytest.mark.parametrize(
    ("declared", "complaint"),
    [
        ("print('run')", "is no literal"),
        ("['a']", "write a dictionary with the keys workloads, tol"),
        ("{'workload': []}", "write a dictionary with the keys workloads, tol"),
        ("{'workloads': [{'drew': 'a()'}]}", "workloads: no key 'drew'; known: name, draw"),
        ("{'workloads': [{'draw': 1}]}", "draw = 1 is no str"),
        ("{'workloads': [{}, {}]}", "two have one name"),
        ("{'workloads': 'all'}", "write a list of dictionaries"),
        ("{'tolerances': [{'rtol': 'a', 'atol': 0, 'source': 'b'}]}", "rtol = 'a' is no float"),
        ("{'tolerances': [{'rtol': 1}]}", "missing 2 required"),
        ("{'labels': {'a': 1}}", 'labels: write {"name": "reason"}'),
    ],
)
def test_a_declaration_that_is_not_understood_is_one_line_with_its_place(load, declared, complaint):
    with pytest.raises(BadProblemError) as caught:
        load(f"{MODEL}ADAEXPLORE = {declared}\n")
    assert "relu.py, line 11: ADAEXPLORE" in str(caught.value)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
