"""Forms of MultiKernelBench and of robust-kbench: settings, labels, verdicts, backward tasks."""

import inspect
import json

import pytest
import torch

from adaexplore.core.bench import TheirVerdict
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Workload
from adaexplore.problems import load_problem
from adaexplore.problems.benchmarks import benchmark_named
from adaexplore.sandbox.user.user_code import Instance

LINEAR = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width: int = 4, outputs: int = 5):
        super(Model, self).__init__()
        self.weight = nn.Parameter(torch.randn(outputs, width))
        self.unused = nn.Parameter(torch.randn(1))

    def forward(self, x, places, fn=nn.functional.linear):
        return fn(x, self.weight)[places]

def get_inputs(batch: int = 2, width: int = 4):
    return [torch.randn(batch, width), torch.tensor([0, 1])]
"""


@pytest.fixture
def put(tmp_path):
    def put(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return put


def test_verdicts_of_multikernelbench_stand_beside_its_answers(put, tmp_path):
    rows = {
        "relu": {"compiled": True, "correctness": True, "performance": {"mean": 0.5}},
        "gelu": {"compiled": True, "correctness": False, "correctness_info": "mismatch"},
        "tanh": {"compiled": False, "correctness": None, "compile_info": "no nvcc"},
    }
    put("result.json", json.dumps(rows))
    for name in (*rows, "silu"):
        put(f"{name}.txt", "There is no module in this reply.")
    answers = benchmark_named("multikernelbench").answers(tmp_path, None)
    assert {answer.key: answer.theirs for answer in answers} == {
        "relu": TheirVerdict("correct", True, 500.0),
        "gelu": TheirVerdict("mismatch", False),
        "tanh": TheirVerdict("no nvcc", False),
        "silu": None,
    }
    assert answers[0].source == "There is no module in this reply."
    put("result.json", '{"relu": {}}')
    with pytest.raises(BadInputError, match="no results of MultiKernelBench"):
        benchmark_named("multikernelbench").answers(tmp_path, None)


def test_a_reference_that_computes_on_the_cpu_is_labelled(put, tmp_path):
    put("reference/activation/relu.py", LINEAR.replace("fn(x, ", "fn(x.cpu(), "))
    [task] = benchmark_named("multikernelbench").tasks(tmp_path)
    problem = load_problem(put(task.name, task.text), device="cpu", language="cpp")
    assert [name for name, _ in problem.labels] == ["reference-on-cpu"]


@pytest.fixture
def robust(put, tmp_path):
    """Make the problems of one task of robust-kbench, with these settings."""

    def robust(way, **settings):
        given = {"single_input": [{}], "single_init": [{}], "single_shared": [{}], **settings}
        multi = {name.replace("single", "multi"): some for name, some in given.items()}
        configs = {f"{name}_configs": some for name, some in (given | multi | settings).items()}
        put(f"tasks/linear/func_{way}.py", LINEAR)
        put(f"tasks/linear/config_{way}.json", json.dumps(configs))
        return [
            load_problem(put(task.name, task.text), device="cpu", language="cpp")
            for task in benchmark_named("robust-kbench").tasks(tmp_path)
        ]

    return robust


def test_each_setting_of_the_constructor_is_a_problem_over_its_inputs(robust, tmp_path):
    problems = robust(
        "forward",
        multi_input=[{"batch": 2}, {"batch": 3}],
        multi_init=[{"outputs": 5}, {"outputs": 7}],
        multi_shared=[{"width": 4}, {"width": 6}],
    )
    assert [problem.workloads for problem in problems] == [
        tuple(
            Workload(f"batch={batch}", f"get_inputs(batch={batch}, width={width})")
            for batch in (2, 3)
        )
        for width in (4, 6, 4, 6)
    ]
    shapes = [Instance.of(problem, tmp_path).model.weight.shape for problem in problems]
    assert list(map(tuple, shapes)) == [(5, 4), (5, 6), (7, 4), (7, 6)]


def test_the_function_to_call_is_no_parameter_of_the_problem(robust, tmp_path):
    [problem] = robust("forward")
    model = Instance.of(problem, tmp_path).model
    assert list(inspect.signature(model.forward).parameters) == ["x", "places"]
    assert sorted(model.state_dict()) == ["unused", "weight"]


def test_a_backward_task_returns_the_gradients_of_inputs_and_weights(robust, tmp_path):
    [problem] = robust("backward")
    instance = Instance.of(problem, tmp_path)
    inputs = instance.inputs(0, problem.workloads[0])
    x, places, gradient = inputs.args
    assert gradient.shape == (2, 5)
    of_x, of_weight = (tensor for _, tensor in instance(inputs))
    weight = instance.model.forward_module.weight
    torch.testing.assert_close(of_x, gradient @ weight)
    torch.testing.assert_close(of_weight, gradient.T @ x)
    assert places.tolist() == [0, 1]


def test_cuda_sources_of_robust_kbench_are_refused_in_a_line(put, tmp_path):
    put("layernorm/forward/kernel.cu", "")
    with pytest.raises(BadInputError, match="has no module; give modules with ModelNew"):
        benchmark_named("robust-kbench").answers(tmp_path, None)
