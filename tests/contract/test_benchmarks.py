"""The contract of every benchmark: a small data folder for each, one suite for all."""

import json
import textwrap
from dataclasses import dataclass, field

import pytest

import flashinfer_files
from adaexplore.core.errors import BadInputError
from adaexplore.problems import LOADERS, access, load_problem
from adaexplore.problems.benchmarks import BENCHMARKS, benchmark_named, kernelbench
from adaexplore.run.bench.order import place_task
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import check_outputs

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x.relu()

def get_inputs():
    return [torch.randn(4, 8)]
"""


GROUPED = """
import json, os
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x.abs()

def get_input_groups():
    with open(os.path.splitext(__file__)[0] + ".json") as file:
        return [[torch.randn(json.loads(line))] for line in file]
"""
LINEAR = """
import torch
from torch import nn

def forward_fn(x, weight):
    return nn.functional.linear(x, weight)

class Model(nn.Module):
    def __init__(self, width: int = 4):
        super(Model, self).__init__()
        self.weight = nn.Parameter(torch.randn(5, width))

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight)

def get_inputs(batch: int = 2, width: int = 4):
    return [torch.randn(batch, width)]
"""


ABS = f"""
import torch

def abs(x):
    return torch.abs(x)

{"#" * 146}

def test_abs():
    return abs(torch.randn(3))
"""
TIMES_ABS = """
import torch
from kernelbenchx.Math.abs import abs

class performance_metrics(Performance_Metrics):
    def __init__(self, dtype=None, is_backward=False, **kwargs):
        super().__init__("abs", dtype=dtype, is_backward=is_backward, **kwargs)

    def get_input_tensors(self):
        self.input_tensors = []
        for i in range(2, 5):
            self.input_tensors.append(torch.randn(2 ** i, dtype=self.dtype))

    def to_cuda(self, x):
        return x.cuda()

    def call_op(self, x):
        return abs(x)
"""


def tritonbench(channel):
    """A channel with two functions, one of which draws random numbers in T."""
    told = {"abs": "Absolute values.", "rand": "Random numbers.", "lost": "Nothing."}
    rows = [{"file": f"{n}.py", "difficulty": 2, "description": t} for n, t in told.items()]
    functions, times = f"data/TritonBench_{channel}_v1", f"performance_metrics/perf_{channel}"
    return {
        f"{functions}.{'jsonl' if channel == 'T' else 'json'}": json.dumps(rows),
        f"{functions}/abs.py": ABS,
        f"{functions}/lost.py": ABS,
        f"{functions}/rand.py": ABS.replace("torch.abs(x)", "torch.rand_like(x)"),
        f"{times}/golden_metrics/abs_perf.py": TIMES_ABS,
        f"{times}/golden_metrics/rand_perf.py": TIMES_ABS,
    }


PREDICTED = "".join(
    json.dumps({"instruction": f"Functional Description: {text}", "predict": "def abs(x): ..."})
    + "\n"
    for text in ("Nothing.", "Unknown.", "Absolute values.")
)


def settings(scope, shared):
    """Settings of robust-kbench: two of the inputs, one of the constructor."""
    inputs = [{"batch": 2}, {"batch": 3}]
    parts = {"input": inputs, "init": [{}], "shared": shared}
    return {f"{scope}_{part}_configs": some for part, some in parts.items()}


def solution(definition, sources):
    """A solution of FlashInfer-Bench whose function returns its outputs."""
    spec = {"language": "python", "entry_point": "main.py::run"}
    return {
        "definition": definition,
        "spec": spec | {"destination_passing_style": False},
        "sources": [{"path": path, "content": text} for path, text in sources.items()],
    }


@dataclass(frozen=True)
class Example:
    """A small data folder of a benchmark, and what it holds.

    `files` are texts by name, `tasks` the categories of the tasks by key, in order, and `excluded`
    a part of the reason by key. `answers` are files of answers, and `answered` the keys of those.
    """

    benchmark: str
    files: dict[str, str]
    tasks: dict[str, str]
    excluded: dict[str, str] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    answered: tuple[str, ...] = ()


EXAMPLES = [
    Example(
        "kernelbench",
        {
            "KernelBench/level1/10_ReLU.py": MODEL,
            "KernelBench/level1/9_Other.py": MODEL,
            "KernelBench/level2/1_Third.py": MODEL,
            "KernelBench/level4/1_Language.py": "from transformers import AutoConfig\n" + MODEL,
            "KernelBench/README.md": "Tasks.",
        },
        {"1/9": "level 1", "1/10": "level 1", "2/1": "level 2"},
        excluded={"4/1": "needs the package transformers"},
        answers={
            "level_1_problem_10_sample_0_kernel.py": "class ModelNew: ...",
            "level_1_problem_9_sample_0_kernel.py": "class ModelNew: ...",
        },
        answered=("1/9", "1/10"),
    ),
    Example(
        "multikernelbench",
        {
            "reference/activation/relu.py": MODEL,
            "reference/activation/silu.py": "import torch_npu  # unused\n" + MODEL,
            "reference/npukernelbench_level0/10_abs.py": GROUPED,
            "reference/npukernelbench_level0/10_abs.json": "[2, 3]\n[4, 5]\n",
            "reference/npukernelbench_level0/11_lost.py": GROUPED,
            "reference/npukernelbench_level4/1_lstm.py": MODEL.replace(
                "return x.relu()", "import torch_npu; return torch_npu.npu_lstm(x)"
            ),
            "reference/__init__.py": "",
        },
        {"relu": "activation", "silu": "activation", "10_abs": "npukernelbench_level0"},
        excluded={"11_lost": "no file 11_lost.json", "1_lstm": "calls torch_npu"},
        answers={
            "10_abs.txt": "Here it is:\n```python\nclass ModelNew: ...\n```\n",
            "relu.py": "class ModelNew: ...",
            "relu_cot.txt": "Let me think.",
            "result.json": json.dumps({"relu": {"compiled": True, "correctness": True}}),
        },
        answered=("10_abs", "relu"),
    ),
    Example(
        "robust-kbench",
        {
            "tasks/linear/func_forward.py": LINEAR,
            "tasks/linear/config_forward.json": json.dumps(
                settings("single", [{}]) | settings("multi", [{}, {"width": 3}])
            ),
            "tasks/linear/func_backward.py": LINEAR,
            "tasks/linear/config_backward.json": json.dumps(
                settings("single", [{}]) | settings("multi", [{}])
            ),
            "tasks/lost/func_forward.py": LINEAR,
            "tasks/other/func_forward.py": LINEAR,
            "tasks/other/config_forward.json": json.dumps(
                settings("single", [{}])
                | settings("multi", [{}])
                | {"multi_init_configs": [{"n": 1}]}
            ),
            "tasks/kernelbench/level_2/task_10/func_forward.py": LINEAR,
            "tasks/kernelbench/level_2/task_10/config_forward.json": json.dumps(
                settings("single", [{}]) | settings("multi", [{}])
            ),
        },
        {
            "kernelbench/level_2/task_10/forward-1": "kernelbench level 2",
            "linear/backward-1": "backward",
            "linear/forward-1": "forward",
            "linear/forward-2": "forward",
        },
        excluded={
            "lost/forward": "no file config_forward.json beside func_forward.py",
            "other/forward": "config_forward.json gives n, which Model does not take",
        },
        answers={"linear/forward.py": "class ModelNew: ...", "linear/notes.py": ""},
        answered=("linear/forward-1",),
    ),
    Example(
        "kernelbenchx",
        {
            "data/kernelbenchx_v1.json": json.dumps(
                [{"file": f"{name}.py"} for name in ("Math/abs", "Random/rand", "Math/lost")]
            ),
            "data/kernelbenchx/Math/abs.py": ABS,
            "metrics/golden_metrics/abs_perf.py": TIMES_ABS,
            "data/kernelbenchx/Random/rand.py": ABS.replace("torch.abs(x)", "torch.rand_like(x)"),
            "metrics/golden_metrics/rand_perf.py": TIMES_ABS,
        },
        {"Math/abs": "Math"},
        excluded={"Random/rand": "rand_like", "Math/lost": "no data/kernelbenchx/Math/lost.py"},
        answers={
            "abs.py": "def abs(x): ...",
            "more.jsonl": json.dumps({"predict": "def abs(x): ...", "file": "Math/abs.py"}),
        },
        answered=("Math/abs", "Math/abs"),
    ),
    Example(
        "tritonbench-t",
        tritonbench("T"),
        {"abs": "difficulty 2"},
        excluded={"lost": "no lost_perf.py", "rand": "random numbers"},
        answers={"some_model.jsonl": PREDICTED},
        answered=("?", "abs", "lost"),
    ),
    Example(
        "tritonbench-g",
        tritonbench("G"),
        {"abs": "difficulty 2", "rand": "difficulty 2"},
        excluded={"lost": "no lost_perf.py"},
        answers={"some_model.jsonl": PREDICTED},
        answered=("?", "abs", "lost"),
    ),
    Example(
        "flashinfer",
        flashinfer_files.DATASET,
        {"paged_d8": "gqa_paged", "norm_h64": "rmsnorm"},
        excluded={"sampling_v16": "draws random numbers (multinomial)"},
        answers={
            "solutions/a/one.json": json.dumps(
                solution("norm_h64", {"kernel.py": "class ModelNew: ...", "main.py": ""})
            ),
            "solutions/b/two.json": json.dumps(
                solution("norm_h64", {"main.py": "def run(hidden_states, weight): ..."})
            ),
            "traces/other.json": "[]",
        },
        answered=("norm_h64", "norm_h64"),
    ),
    Example(
        "sol-execbench",
        flashinfer_files.TASKS,
        {"rope_half": "L1", "custom_matmul": "L2"},
    ),
]


class Shared:
    def __init__(self, server):
        self.spawn = server.spawn

    def close(self):
        pass


@pytest.fixture(params=EXAMPLES, ids=lambda example: example.benchmark)
def example(request, monkeypatch):
    monkeypatch.setattr(kernelbench, "find_spec", lambda _: None)  # whatever is installed here
    return request.param


@pytest.fixture
def benchmark(example):
    return benchmark_named(example.benchmark)


def put(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


@pytest.fixture
def data(example, tmp_path):
    return put(tmp_path / "data", example.files)


def test_every_benchmark_has_an_example():
    assert {example.benchmark for example in EXAMPLES} == {one.name for one in BENCHMARKS}


def test_it_says_in_a_line_what_it_is_and_how_to_get_it(benchmark):
    for line in (benchmark.name, benchmark.about, benchmark.needs.folder, benchmark.needs.get):
        assert line.strip() == line != ""
        assert "\n" not in line


def test_its_tasks_come_in_order_with_their_categories(benchmark, example, data):
    assert {task.key: task.category for task in benchmark.tasks(data)} == example.tasks
    assert [task.key for task in benchmark.tasks(data)] == list(example.tasks)


def test_what_is_left_out_has_a_reason_and_is_no_task(benchmark, example, data):
    excluded = benchmark.excluded(data)
    assert [one.key for one in excluded] == list(example.excluded)
    for one in excluded:
        assert example.excluded[one.key] in one.reason
        assert "\n" not in one.reason
        assert one.category
    assert not example.excluded.keys() & example.tasks.keys()


def test_every_task_becomes_a_problem_that_runs(
    benchmark, data, tmp_path, server, monkeypatch, subtests
):
    monkeypatch.setattr(access.ForkServer, "start", lambda _: Shared(server))
    for task in benchmark.tasks(data):
        with subtests.test(task.key):
            files = {}
            place = place_task(task, "problems/", files)
            path = put(tmp_path, files) / place
            assert any(loader.can_load(path) for loader in LOADERS)
            problem = load_problem(path, device="cpu", language="cpp")
            instance = Instance.of(problem, tmp_path)
            for workload in problem.workloads:
                outputs = instance(instance.inputs(problem.seed, workload))
                check_outputs(problem.name, outputs, instance.device)


def test_two_tasks_never_share_a_file(benchmark, data):
    files, places = {}, []
    for task in benchmark.tasks(data):
        before = dict(files)
        places.append(place_task(task, "problems/", files))
        assert all(files[name] == text for name, text in before.items())
    assert len(set(places)) == len(places)


def test_no_code_of_a_task_is_run_by_reading(benchmark, example, data):
    for file in data.rglob("*.py"):
        file.write_text(file.read_text() + "\nraise SystemExit('it was run')\n")
    assert [task.key for task in benchmark.tasks(data)] == list(example.tasks)
    assert [one.key for one in benchmark.excluded(data)] == list(example.excluded)


def test_answers_come_in_order_with_their_keys(benchmark, example, data, tmp_path):
    folder = put(tmp_path / "answers", example.answers)
    folder.mkdir(exist_ok=True)
    answers = benchmark.answers(folder, data)
    assert tuple(answer.key for answer in answers) == example.answered
    assert all(answer.source and answer.place for answer in answers)


@pytest.mark.parametrize("ask", ["tasks", "excluded"])
def test_a_folder_without_tasks_is_refused_in_a_line(benchmark, tmp_path, ask):
    with pytest.raises(BadInputError, match="--data") as caught:
        getattr(benchmark, ask)(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_answers_has_none(benchmark, tmp_path):
    assert list(benchmark.answers(tmp_path, None)) == []
