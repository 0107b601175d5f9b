"""Forms in which answers to KernelBench are released, and modules around their functions."""

import json

import pytest
import torch
from torch import nn

from adaexplore.core.bench import TheirVerdict
from adaexplore.core.errors import BadInputError
from adaexplore.problems.benchmarks import BENCHMARKS, benchmark_named
from adaexplore.problems.benchmarks import kernelbench as module

ANSWER = "class ModelNew: ...\n"
REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    \"\"\"A layer
    and a scale.\"\"\"

    def __init__(self, width, scale):
        super(Model, self).__init__()
        self.first, self.norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.ones(1))
        self.pool = nn.MaxPool3d(kernel_size=(2, 2, 2), stride=2)

    def forward(self, x):
        return self.norm(self.first(x)) + self.bias


width = 8


def get_inputs():
    return [torch.ones(2, width)]


def get_init_inputs():
    return [width, 0.5]
"""


@pytest.fixture
def kernelbench():
    return benchmark_named("kernelbench")


@pytest.fixture
def put(tmp_path):
    def put(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return put


@pytest.mark.parametrize(
    ("place", "key"),
    [
        ("kernelbench/level2/37.py", "2/37"),
        ("generated_kernels/level_1/problem_4.py", "1/4"),
        ("best_agent_solutions/level_5/task_12.py", "5/12"),
        ("level_3_problem_2_sample_0_kernel.py", "3/2"),
        ("L2/97_Matmul/kernel_code.py", "2/97"),
        ("L3/4_LeNet5/composed_kernel.py", "3/4"),
        ("L3/1_MLP/final_kernel.py", "3/1"),
        ("04_Matrix/optimized_kernel_beam_search.py", "1/4"),
        ("unpacked/h100/1/23/custom_code.py", "1/23"),
    ],
)
def test_level_and_number_are_found_in_the_path(kernelbench, put, tmp_path, place, key):
    put(place, ANSWER)
    put("tasks/level_2/37.py", ANSWER)
    put("README.py", ANSWER)
    [answer] = kernelbench.answers(tmp_path, None)
    assert (answer.key, answer.place, answer.source) == (key, place, ANSWER)
    assert answer.task is None


def test_a_pair_brings_its_own_problem(kernelbench, put, tmp_path):
    put("2/5/custom_code.py", ANSWER)
    put("2/5/ref_code.py", REFERENCE)
    [answer] = kernelbench.answers(tmp_path, None)
    assert (answer.task.key, answer.task.category, answer.task.text) == (
        "2/5",
        "level 2",
        REFERENCE,
    )


def test_so_do_lines_of_json_and_those_without_an_answer_are_left_out(kernelbench, put, tmp_path):
    row = {"level_id": 1, "task_id": 3, "ref_code": REFERENCE, "custom_code": ANSWER}
    rows = [row, *(row | {"custom_code": nothing} for nothing in (None, "", "None"))]
    put("code/h100.json", "\n".join(map(json.dumps, rows)))
    put("code/config.json", '{"a": 1}')
    put("code/pretty.json", '{\n "a": 1\n}')
    [answer] = kernelbench.answers(tmp_path, None)
    assert (answer.key, answer.place) == ("1/3", "code/h100.json#1/3")
    assert answer.task.text == REFERENCE


def test_verdicts_of_kernelbench_stand_beside_its_answers(kernelbench, put, tmp_path):
    row = {"sample_id": 0, "compiled": True, "correctness": True, "metadata": {}, "runtime": 1.5}
    wrong = row | {"sample_id": 1, "correctness": False, "runtime": -1.0}
    broken = row | {"compiled": False, "correctness": False, "runtime": -1.0}
    put("runs/mine/eval_results.json", json.dumps({"7": [row, wrong], "8": [broken]}))
    for place in ("7_sample_0", "7_sample_1", "7_sample_2", "8_sample_0"):
        put(f"runs/mine/level_1_problem_{place}_kernel.py", ANSWER)
    put("runs/other/level_1_problem_7_sample_0_kernel.py", ANSWER)
    found = {answer.place: answer.theirs for answer in kernelbench.answers(tmp_path, None)}
    assert list(found.values()) == [
        TheirVerdict("correct", True, 1500.0),
        TheirVerdict("not correct", False),
        None,
        None,
        TheirVerdict("not compiled", False),
    ]
    put("runs/mine/eval_results.json", '{"7": 3}')
    with pytest.raises(BadInputError, match=r"eval_results\.json: no results of KernelBench"):
        kernelbench.answers(tmp_path, None)


def test_a_folder_of_tasks_takes_the_place_of_the_benchmark(kernelbench, put, tmp_path):
    put("tasks/level_5/1_attention.py", REFERENCE)
    put("best/level_5/task_1.py", "class Model: ...\n")
    put("best/level_5/task_2.py", "def broken(:\n")
    put("best/level_5/task_3.py", "class Mine: ...\nModel = Mine\n")
    first, second, third = kernelbench.answers(tmp_path, None)
    assert third.source.endswith("ModelNew = Model\n")
    assert (first.task.name, first.task.text) == ("1_attention.py", REFERENCE)
    assert first.source.endswith("ModelNew = Model\n")
    assert (second.source, second.task) == ("def broken(:\n", None)


def test_tasks_come_in_the_order_of_their_numbers(kernelbench, put, tmp_path):
    for name in ("level2/10_b.py", "level2/9_a.py", "level1/11_c.py", "level1/notes.py"):
        put(f"KernelBench/{name}", REFERENCE)
    tasks = kernelbench.tasks(tmp_path)
    assert [task.key for task in tasks] == ["1/11", "2/9", "2/10"]
    assert tasks == kernelbench.tasks(tmp_path / "KernelBench")
    with pytest.raises(BadInputError, match="no file level<L>"):
        kernelbench.tasks(tmp_path / "KernelBench" / "level1")


def test_level_4_needs_the_package_and_the_model(kernelbench, put, tmp_path, monkeypatch):
    put("level4/1_tiny.py", "from transformers import AutoModel\nmodel_name = 'me/tiny'\n")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    [excluded] = kernelbench.excluded(tmp_path)
    assert "pip install transformers" in excluded.reason
    monkeypatch.setattr(module, "find_spec", lambda name: name)
    [excluded] = kernelbench.excluded(tmp_path)
    assert excluded.reason.endswith("me/tiny of the Hugging Face hub: hf download me/tiny")
    put("hub/models--me--tiny/snapshots/abc/config.json", "{}")
    assert [task.key for task in kernelbench.tasks(tmp_path)] == ["4/1"]


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda one: one.name)
def test_every_benchmark_refuses_a_folder_without_tasks(benchmark, tmp_path):
    with pytest.raises(BadInputError, match="--data"):
        benchmark.tasks(tmp_path)
    assert benchmark.answers(tmp_path, None) == []


class TestFunction:
    """A module around `kernel_function`, whose arguments are found by name."""

    @pytest.fixture
    def module(self, kernelbench, put, tmp_path):
        """Make the module around a function of this signature that returns its arguments."""

        def module(signature):
            body = f"def kernel_function({signature}):\n    return dict(locals())\n"
            put("L2/1_layer/original.py", REFERENCE)
            put("L2/1_layer/kernel_code.py", body)
            [answer] = kernelbench.answers(tmp_path, None)
            assert answer.adapted
            names = {}
            exec(answer.source, names)
            return names["ModelNew"](8, 0.5)

        return module

    @pytest.mark.parametrize(
        ("signature", "expected"),
        [
            (
                "x, first_weight, norm_bias",
                {"first_weight": "first.weight", "norm_bias": "norm.bias"},
            ),
            ("x, first_w, first_b", {"first_w": "first.weight", "first_b": "first.bias"}),
            (
                "x, weight, bias, norm_weight, norm_bias, add_bias=None",
                {
                    "weight": "first.weight",
                    "bias": "first.bias",
                    "norm_weight": "norm.weight",
                    "norm_bias": "norm.bias",
                    "add_bias": "bias",
                },
            ),
            (
                "x, one, two, three, four, five",
                dict(
                    zip(
                        ("one", "two", "three", "four", "five"),
                        ("bias", "first.weight", "first.bias", "norm.weight", "norm.bias"),
                        strict=True,
                    )
                ),
            ),
            ("x, scale=1.0, pool=None", {"scale": 0.5, "pool": None}),
            ("x, kernel_size=3, stride=1, eps=0.0", {"kernel_size": 2, "stride": 2, "eps": 1e-05}),
        ],
    )
    def test_arguments_are_found_by_name(self, module, signature, expected):
        made, x = module(signature), torch.ones(2, 8)
        got = made(x)
        state = dict(made.named_parameters())
        assert got.pop("x") is x
        assert got.keys() == expected.keys()
        for name, value in expected.items():
            tensor = state.get(value) if isinstance(value, str) else None
            assert got[name] is tensor if tensor is not None else got[name] == value

    def test_a_function_of_any_arguments_gets_tensors_and_numbers(self, module):
        made = module("*args")
        x = torch.ones(2, 8)
        got = made(x)["args"]
        assert got[0] is x
        assert all(a is b for a, b in zip(got[1:6], made.parameters(), strict=True))
        assert got[6:] == (0.5,)

    def test_tensors_follow_the_module_when_it_moves(self, module):
        made = module("x, params")
        nn.init.zeros_(made.first.weight)
        made.double()
        params = made(torch.ones(2, 8))["params"]
        assert params["first.weight"].dtype == torch.float64
        assert not params["first.weight"].any()
        with pytest.raises(TypeError, match="no counterpart of the tensor 'stem'"):
            params["stem"]

    def test_a_required_argument_without_a_counterpart_is_an_error(self, module):
        with pytest.raises(TypeError, match="no counterpart of the argument 'theta'"):
            module("x, theta, first_weight")
