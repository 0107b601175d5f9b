"""The contract of every benchmark: a small data folder for each, one suite for all."""

import textwrap
from dataclasses import dataclass, field

import pytest

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
                check_outputs(problem.name, outputs)


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
