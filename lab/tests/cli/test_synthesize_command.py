"""synthesize: tasks in a folder, with and without a model."""

import json
import re

import pytest

from adaexplore.problems import STRUCTURE_PRELOAD, structure_of
from adaexplore.sandbox.process import ForkServer
from llm_server import LlmServer

MODULE = '''"""Row norms of a Gram matrix."""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.linalg.vector_norm(torch.sin(x) @ x.T, dim=-1)


def get_inputs():
    return [torch.randn(5, 3)]
'''


@pytest.fixture(scope="module")
def server():
    """The server that the command starts, with the imports of its jobs."""
    server = ForkServer.start([*STRUCTURE_PRELOAD, "adaexplore.evaluate.judge.examine"])
    yield server
    server.close()


def index(folder):
    return json.loads((folder / "tasks.json").read_text())["tasks"]


@pytest.mark.slow
def test_tasks_of_the_grammar(lab, server, tmp_path):
    folder = tmp_path / "tasks"
    result = lab("synthesize", "-n", 4, "-o", folder, "--seed", 5)
    assert result.code == 0
    assert re.search(r"4 tasks kept of \d+ tried", result.out)
    entries = index(folder)
    assert len(entries) == 4
    for entry in entries:
        source = (folder / f"{entry['name']}.py").read_text()
        assert structure_of(server, entry["name"], source)["structure"] == entry["structure"]
    more = lab("synthesize", "-n", 1, "-o", folder, "--seed", 5)
    assert more.code == 0
    assert "it has the structure of" in more.out  # the same seeds, which are there already
    assert len({entry["structure"] for entry in index(folder)}) == 5


def test_tasks_of_a_model(lab, tmp_path, monkeypatch):
    with LlmServer(lambda messages: f"```python\n{MODULE}```") as llm:
        llm.use(monkeypatch)
        model = ("--model", "openai:gpt-5-mini", "--budget", "1mtok")
        result = lab("synthesize", "-n", 1, "-o", tmp_path, *model)
        styles = ("--styles", "mutation,grammar")
        both = lab("synthesize", "-n", 2, "-o", tmp_path, *model, *styles)
    assert result.code == 0
    assert both.code == 0
    first, *others = index(tmp_path)
    assert first["origin"] == "self-instruct"
    assert first["difficulty"] == len(first["ops"]) > 2
    assert {entry["origin"] for entry in others} == {"grammar"}


@pytest.mark.slow
def test_problems_that_no_task_may_repeat(lab, tmp_path, file, monkeypatch):
    (tmp_path / "bench").mkdir()
    file("bench/grams.py", MODULE)
    with LlmServer(lambda messages: f"```python\n{MODULE}```") as llm:
        llm.use(monkeypatch)
        words = ("--model", "openai:gpt-5-mini", "--exclude", tmp_path / "bench")
        result = lab("synthesize", "-n", 1, "-o", tmp_path / "tasks", *words)
    assert result.code == 1
    assert "it has the structure of grams.py" in result.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--styles", "mutation"), "needs a --model"),
        (("--styles", "poetic"), "no such style"),
        (("--model", "openai:gpt-5-mini", "--styles", "grammar"), "asks no model"),
        (("--budget", "2usd"), "--budget goes with --model"),
        (("--exclude", "/nowhere"), "no Python files"),
    ],
)
def test_bad_input_is_one_line(lab, tmp_path, words, complaint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    result = lab("synthesize", "-o", tmp_path / "tasks", *words)
    assert complaint in result.complaint
