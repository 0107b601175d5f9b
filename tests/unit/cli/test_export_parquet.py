"""Recorded runs as data for trainers, from the command line."""

import pytest
from answering import LOCAL
from pyarrow import parquet

from adaexplore.core.ask import Ask, Exchange
from adaexplore.core.candidate import Candidate
from adaexplore.core.config import Config
from adaexplore.core.environment import Environment
from adaexplore.core.evaluation import Passed, Timing
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Message, Prompt, Reply
from adaexplore.store import RunRecord, create_run

RELU = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(16, 16)]
"""


@pytest.fixture
def stored(tmp_path):
    """A run of a benchmark's problem, with one right answer of a model."""
    path = tmp_path / "runs" / "of" / "a-benchmark"
    problem = Problem("relu", RELU, "cpp", "cpu")
    record = RunRecord(problem, Config(), ("model",), Environment(), "command", 1.5e9)
    proposal = Proposal(Candidate("class ModelNew: ...", "cpp"), "model", "", reply="Clamped.")
    timing = Timing(1.0, (1.0, 1.0), {"eager": 2.0}, 2.0, (2.0, 2.0), 2.0, 9)
    asked = Prompt((Message("user", "Make relu faster."),))
    with create_run(path, record) as directory:
        store = directory.store
        store.open_ask(Ask(1, 0, "large", 0, (), (), 0, "model", 1.5e9))
        store.add_call(Exchange(1, asked, Reply("Clamped.", "model"), 1.5e9))
        store.queue(1, proposal)
        store.record(Node(1, 0, "large", proposal, Passed("fp32", 0.0, timing), ask_id=1))
    return tmp_path / "runs"


@pytest.fixture
def runs(adaexplore, llm, problem, stored):
    """The stored run, and one of a model that answers."""
    words = ("--device", "cpu", "--model", LOCAL, "--steps", 1, "--run", stored / "own")
    done = adaexplore("explore", problem, *words)
    assert done.code == 0, done
    return stored


def test_rows_of_all_runs_but_a_benchmark_s(adaexplore, runs, tmp_path):
    target = tmp_path / "rows.parquet"
    done = adaexplore("export", runs, "--parquet", target)
    assert done.code == 0, done
    assert "1 rows of 1 runs" in done.out
    assert "left out: 1 run: a benchmark problem" in done.out
    [row] = parquet.read_table(target).to_pylist()
    assert row["extra_info"]["run"] == "own"
    assert "return torch.relu(x) + 1" in row["reward_model"]["ground_truth"]
    assert {"role", "content"} == set(row["prompt"][0])

    done = adaexplore("export", runs, "--parquet", target, "--with-benchmarks", "--form", "sft")
    assert done.code == 0, done
    rows = parquet.read_table(target).to_pylist()
    assert [row["run"] for row in rows] == ["of/a-benchmark", "own"]
    assert all(row["messages"][-1]["role"] == "assistant" for row in rows)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--reward", "fastest"), "--reward fastest: there are log, published"),
        (("--form", "stories"), "--form"),
        (("--flashinfer", "folder"), "give one of"),
    ],
)
def test_wrong_options_are_one_line(adaexplore, tmp_path, words, complaint):
    done = adaexplore("export", tmp_path, "--parquet", tmp_path / "rows.parquet", *words)
    assert done.code == 2
    assert complaint in done.complaint


def test_a_folder_without_runs_is_one_line(adaexplore, tmp_path):
    done = adaexplore("export", tmp_path, "--parquet", tmp_path / "rows.parquet")
    assert done.code == 2
    assert "no run there, and none below it" in done.complaint


def test_runs_of_benchmarks_alone_leave_nothing(adaexplore, stored, tmp_path):
    done = adaexplore("export", stored, "--parquet", tmp_path / "rows.parquet")
    assert done.code == 2
    assert "--with-benchmarks takes them" in done.complaint


def test_a_file_that_cannot_be_written_is_one_line(adaexplore, stored, tmp_path):
    words = ("--with-benchmarks", "--parquet", tmp_path / "nowhere" / "rows.parquet")
    done = adaexplore("export", stored, *words)
    assert done.code == 2
    assert "cannot be written" in done.complaint
