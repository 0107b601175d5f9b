"""The contract of every loader of problems: a fixture for each format, one suite for all."""

import json
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

import flashinfer_files
from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Access, Checks, Problem, Workload
from adaexplore.core.protocols.loader import LoadOptions
from adaexplore.problems import LOADERS, access, load_problem
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import check_outputs, tensors_of

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, scale=2.0):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, x):
        return x.relu() * self.scale
"""
GROUPS = """
import json
from pathlib import Path

def get_input_groups():
    cases = json.loads((Path(__file__).parent / "cases.json").read_text())
    return [[torch.rand(case)] for case in cases]
"""
RELU = flashinfer_files.definition(
    "relu",
    "activation",
    "def run(x):\n    return x.relu()\n",
    {"x": flashinfer_files.tensor("rows", "width", dtype="float32")},
    {"y": flashinfer_files.tensor("rows", "width", dtype="float32")},
    {"rows": None, "width": 8},
)


@dataclass(frozen=True)
class Example:
    """A small problem in a loader's format: its files, the first its path, and what they hold.

    `tensors` are further files. `captured` inputs are the same under every seed.
    """

    loader: str
    files: dict[str, str]
    workloads: tuple[str, ...]
    tensors: dict[str, object] = field(default_factory=dict)
    captured: bool = False


EXAMPLES = [
    Example(
        "KernelBench",
        {"relu.py": MODEL + "\ndef get_inputs():\n    return [torch.rand(4, 8)]\n"},
        ("inputs",),
    ),
    Example(
        "MultiKernelBench",
        {"relu.py": MODEL + GROUPS, "cases.json": "[[4, 8], [2, 3], [2, 3]]"},
        ("4x8", "2x3-1", "2x3-2"),
    ),
    Example(
        "FlashInfer-Bench",
        {
            "definitions/activation/relu.json": json.dumps(RELU),
            "workloads/activation/relu.jsonl": flashinfer_files.lines(
                flashinfer_files.trace("relu", f"{rows}-a", {"rows": rows}, {}) for rows in (4, 9)
            ),
        },
        ("4 rows=4", "9 rows=9"),
    ),
]
CAPTURED_FILES = {
    "weights.pt": {"scale": torch.tensor(3.0)},
    "4x8.pt": {"args": [torch.ones(4, 8)], "kwargs": {}},
    "2x3.pt": {"args": [torch.ones(2, 3)], "kwargs": {}},
}
CAPTURED = Problem(
    "relu",
    MODEL,
    "cpp",
    "cpu",
    workloads=tuple(Workload(name, file=f"{name}.pt") for name in ("4x8", "2x3")),
    access=Access(file="problem.py"),
    weights="weights.pt",
)
EXAMPLES.append(
    Example(
        "captured module",
        {"captured.json": json.dumps(CAPTURED.to_json())},
        ("4x8", "2x3"),
        CAPTURED_FILES,
        captured=True,
    )
)
OPTIONS = LoadOptions("cpu", "cpp", Checks("half"), seed=7, mode="eval")


class Shared:
    def __init__(self, server):
        self.spawn = server.spawn

    def close(self):
        pass


@pytest.fixture(params=EXAMPLES, ids=lambda example: example.loader)
def example(request):
    return request.param


@pytest.fixture
def loader(example):
    return next(loader for loader in LOADERS if loader.name == example.loader)


@pytest.fixture
def path(example, tmp_path):
    texts = {name: textwrap.dedent(text) for name, text in example.files.items()}
    for name, content in example.tensors.items():
        torch.save(content, tmp_path / name)
    return flashinfer_files.put(tmp_path, texts) / next(iter(example.files))


@pytest.fixture
def problem(loader, path, server, monkeypatch) -> Problem:
    monkeypatch.setattr(access.ForkServer, "start", lambda _: Shared(server))
    return loader.load(path, OPTIONS)


def test_every_loader_has_an_example():
    assert {example.loader for example in EXAMPLES} == {loader.name for loader in LOADERS}


def test_it_is_the_one_that_load_problem_picks(loader, path):
    assert next(one for one in LOADERS if one.can_load(path)) is loader


def test_whether_it_can_is_asked_without_running_code(loader, path):
    path.write_text(path.read_text() + "\nraise SystemExit('it was run')\n")
    assert loader.can_load(path)


@pytest.mark.parametrize("name", ["nowhere.txt", "."])
def test_what_is_no_problem_is_not_its_own(loader, tmp_path, name):
    assert not loader.can_load(tmp_path / name)


def test_the_options_come_through(problem):
    found = (problem.device, problem.language, problem.checks, problem.seed, problem.mode)
    assert found == ("cpu", "cpp", Checks("half"), 7, "eval")
    assert problem.name == "relu"


def test_every_workload_has_a_name_of_its_own_and_can_be_run(problem, example, tmp_path):
    assert tuple(w.name for w in problem.workloads) == example.workloads
    instance = Instance.of(problem, tmp_path)
    for workload in problem.workloads:
        outputs = instance(instance.inputs(problem.seed, workload))
        check_outputs(problem.name, outputs, instance.device)


def test_a_seed_gives_the_same_inputs_again(problem, example, tmp_path):
    instance = Instance.of(problem, tmp_path)
    for workload in problem.workloads:
        one, same, other = (tensors_of(instance.inputs(seed, workload)) for seed in (1, 1, 2))
        assert all(bool((a == b).all()) for a, b in zip(one, same, strict=True))
        is_same = all(bool((a == b).all()) for a, b in zip(one, other, strict=True))
        assert is_same == example.captured


def test_it_survives_being_stored(problem):
    again = Problem.from_json(problem.to_json())
    assert again == problem
    assert again.digest == problem.digest


def test_the_same_files_elsewhere_are_the_same_problem(
    problem, loader, example, tmp_path, tmp_path_factory
):
    texts = {name: (tmp_path / name).read_text() for name in example.files}
    other = flashinfer_files.put(tmp_path_factory.mktemp("other"), texts)
    assert loader.load(other / next(iter(texts)), OPTIONS).digest == problem.digest


def test_a_broken_file_is_one_line_with_its_path(loader, path):
    path.write_text(path.read_text() + "\nclass (\n")
    with pytest.raises(BadProblemError) as caught:
        loader.load(path, OPTIONS)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_what_no_loader_takes_is_said_with_the_path(tmp_path):
    with pytest.raises(BadProblemError, match="nowhere"):
        load_problem(Path(tmp_path / "nowhere"), device="cpu", language="cpp")


@pytest.mark.parametrize(
    ("groups", "complaint"),
    [
        ("[]", "returned no group of inputs"),
        (
            "[[torch.rand(2)], 3]",
            r"get_input_groups\(\)\[1\] is of type int; return a list of lists",
        ),
    ],
)
def test_groups_that_hold_no_arguments_are_refused(
    tmp_path, server, monkeypatch, groups, complaint
):
    monkeypatch.setattr(access.ForkServer, "start", lambda _: Shared(server))
    path = tmp_path / "relu.py"
    path.write_text(f"{MODEL}\ndef get_input_groups():\n    return {groups}\n")
    with pytest.raises(BadProblemError, match=complaint):
        load_problem(path, device="cpu", language="cpp")


def test_of_many_groups_the_largest_are_timed(tmp_path, server, monkeypatch):
    monkeypatch.setattr(access.ForkServer, "start", lambda _: Shared(server))
    path = tmp_path / "relu.py"
    sizes = [(), (3,), (2, 9), (5,), (4, 4), (30,), (2, 8)]
    groups = f"[[torch.rand(size), torch.rand(())] for size in {sizes}]"
    path.write_text(f"{MODEL}\ndef get_input_groups():\n    return {groups}\n")
    problem = load_problem(path, device="cpu", language="cpp")
    assert len(problem.workloads) == len(sizes)
    assert [workload.name.partition("_")[0] for workload in problem.timed_workloads] == [
        "2x9",
        "4x4",
        "30",
        "2x8",
    ]
