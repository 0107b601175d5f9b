"""Winners handed over as the function of their task."""

import pytest
import torch

from adaexplore.problems.benchmarks.scripted.answer import own_part, with_module
from adaexplore.problems.solutions.functions import NotAFunctionError, as_function

WINNER = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, *inputs):
        return ("judged", *inputs)
"""
TASK = """
import torch
from typing import Optional

def scaled(x, y, factor: float = 1.0, *, mode: Optional[str] = None):
    return ("PyTorch", x, y, factor, mode)

class Model(torch.nn.Module):
    def forward(self, a, b):
{body}

def get_inputs(i=3):
    return [torch.randn(i), torch.randn(i)]
"""


def function(body, name="scaled", task=TASK):
    """The function that is written for a task whose `forward` has this body."""
    names = {}
    text = task.replace("{body}", "\n".join(f"        {line}" for line in body.splitlines()))
    exec(as_function(WINNER, text, name), names)
    return names[name]


def test_the_kernel_runs_with_the_settings_that_were_judged():
    scaled = function("return scaled(a, b, factor=2.0)")
    assert scaled("x", "y", 2.0) == scaled("x", "y", factor=2.0) == ("judged", "x", "y")
    assert scaled("x", "y") == ("PyTorch", "x", "y", 1.0, None)
    assert scaled("x", "y", 2.0, mode="m") == ("PyTorch", "x", "y", 2.0, "m")


def test_a_tensor_or_nothing_in_place_of_what_was_judged_goes_to_pytorch():
    scaled = function("return scaled(a, b, factor=2.0)")
    assert scaled("x", "y", torch.tensor([2.0]))[0] == "PyTorch"
    assert scaled("x", None, 2.0)[0] == "PyTorch"


def test_inputs_come_in_the_order_of_the_module():
    assert function("return scaled(b, a)")("x", "y") == ("judged", "y", "x")


def test_settings_may_depend_on_the_inputs():
    scaled = function("return scaled(a, b, factor=(a.shape[-1],))")
    x = torch.zeros(2, 3)
    assert scaled(x, "y", (3,))[0] == "judged"
    assert scaled(x, "y", (2,))[0] == "PyTorch"


@pytest.mark.parametrize(
    "body",
    [
        "a = a.clone()\nreturn scaled(a, b)",
        "factor = 1.0\nreturn scaled(a, b, factor=factor)",
        "result = scaled(a, b)\nreturn result",
    ],
)
def test_clones_constants_and_a_name_around_the_call_change_nothing(body):
    assert function(body)("x", "y") == ("judged", "x", "y")


def test_the_benchmarks_own_name_is_bound_too():
    assert function("return scaled(a, b)", name="Scaled")("x", "y") == ("judged", "x", "y")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("values, _ = scaled(a, b)\nreturn values", "does not return what the function returns"),
        ("return scaled(a, b) + 1", "does not return what the function returns"),
        ("out = torch.empty(3)\nreturn scaled(a, b, out)", "computes something around"),
        ("return scaled(a + b, 1)", "one by one"),
    ],
)
def test_a_module_that_does_more_than_call_has_a_reason(body, why):
    with pytest.raises(NotAFunctionError, match=why):
        function(body)


def test_a_problem_without_a_function_has_a_reason():
    with pytest.raises(NotAFunctionError, match="not a call of one function"):
        as_function(WINNER, "class Other: ...", "scaled")
    with pytest.raises(NotAFunctionError, match="any number of arguments"):
        function(
            "return scaled(*a)",
            task=TASK.replace("def forward(self, a, b)", "def forward(self, *a)"),
        )


def test_an_answer_loses_the_module_that_was_put_around_it():
    answer = "def scaled(x, y):\n    return x\n"
    task = TASK.replace("{body}", "        return scaled(a, b)")
    assert own_part(with_module(answer, task, ("scaled",))) == answer
    assert own_part(answer) == answer
