"""The command line, run in this process with the workers of a server that is up already."""

import functools
import itertools
import sys
import textwrap
from dataclasses import dataclass

import pytest
from answering import answer_by

from adaexplore.cli import main
from adaexplore.llm.providers import open_client
from adaexplore.run import proposers
from adaexplore.sandbox.process import ForkServer

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


class BorrowedServer:
    """A server that stays when a command is done with it."""

    def __init__(self, server) -> None:
        self.spawn = server.spawn

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line on stderr that says what was wrong with the input."""
        assert self.code == 2, self
        assert self.out == "", self
        [line] = self.err.splitlines()
        assert line.startswith("adaexplore: ")
        return line


@pytest.fixture
def adaexplore(monkeypatch, capsys, server):
    """Runs a command line."""
    monkeypatch.setattr(
        ForkServer, "start", staticmethod(lambda preload=(): BorrowedServer(server))
    )

    def run(*words) -> Result:
        monkeypatch.setattr(sys, "argv", ["adaexplore", *map(str, words)])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        return Result(caught.value.code or 0, out, err)

    return run


@pytest.fixture
def file(tmp_path):
    """Writes a file and says where it is."""

    def file(name: str, text: str):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return file


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
