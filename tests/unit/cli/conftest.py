"""The command line, run in this process with the workers of a server that is up already."""

import errno
import functools
import itertools
import os
from pathlib import Path

import pytest
from answering import answer_by

from adaexplore.cli import main
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.llm.providers import open_client
from adaexplore.run import processes, proposers

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def get_inputs():
    return [torch.randn(64, 64)]
"""
CANDIDATE = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(9):
            out = x.clamp(min=0) + 1
        return out
"""


@pytest.fixture
def adaexplore(command_line):
    """Run a command line of adaexplore."""
    return command_line("adaexplore", main)


@pytest.fixture
def fill_disk(monkeypatch):
    """Make files end in the middle, as on a full disk."""

    def write_half(self, content, *_, **__):
        data = content.encode() if isinstance(content, str) else content
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill_disk():
        monkeypatch.setattr(Path, "write_text", write_half)
        monkeypatch.setattr(Path, "write_bytes", write_half)

    return fill_disk


@pytest.fixture
def whole_judges(adaexplore, monkeypatch):
    """Evaluators with the `torch.compile` baseline, as users have."""
    monkeypatch.setattr(processes, "LocalEvaluator", LocalEvaluator)


@pytest.fixture
def problem(file):
    return file("problem.py", PROBLEM)


@pytest.fixture
def candidate(file):
    return file("candidate.py", CANDIDATE)


@pytest.fixture
def llm(loopback, monkeypatch):
    """A model behind every provider's name, which are asked again without a wait."""
    loopback.reset(answer_by(itertools.count(3)))
    loopback.use(monkeypatch)
    impatient = functools.partial(open_client, sleep=lambda _: None)
    monkeypatch.setattr(proposers, "open_client", impatient)
    return loopback


@pytest.fixture
def explore(adaexplore, problem, tmp_path):
    numbers = itertools.count()

    def explore(*words):
        path = tmp_path / f"run-{next(numbers)}"
        return adaexplore("explore", problem, "--device", "cpu", "--run", path, *words), path

    return explore
