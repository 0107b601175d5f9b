"""model: a whole model from a script."""

import json

import pytest

SCRIPT = """
import torch
from torch import nn
from beside import WIDTH

def make():
    torch.manual_seed(0)
    block = lambda: nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU())
    model = nn.Sequential(block(), block()).eval()
    return model, {"wide": (torch.rand(64, WIDTH),)}

def nothing():
    return 3

def broken():
    raise RuntimeError("no weights")
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "beside.py").write_text("WIDTH = 48\n")
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    return file


def test_the_ranking_comes_before_anything_is_spent(adaexplore, script, tmp_path):
    run = tmp_path / "run"
    result = adaexplore("model", f"{script}:make", "--rank", "--run", run)
    assert result.code == 0, result.err
    assert "Sequential on cpu, fp32: wide" in result.out
    assert "all of them at their roofline" in result.out
    ranking = json.loads((run / "ranking.json").read_text())
    group = ranking["groups"][0]
    assert group["paths"] == ["0", "1"]
    assert (run / "modules" / group["name"] / "problem.py").is_file()
    page = (run / "index.html").read_text()
    assert "Modules by what kernels can save" in page
    assert f"<td>{group['name']}</td>" in page


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("script.py", "write FILE.py:FUNCTION"),
        ("missing.py:make", "no such file"),
        ("script.py:other", "defines no function other"),
        ("script.py:nothing", "returned a int; return (model, calls)"),
        ("script.py:broken", "raised RuntimeError: no weights"),
    ],
)
def test_a_script_without_a_model(adaexplore, script, place, complaint):
    result = adaexplore("model", str(script.parent / place), "--rank")
    assert result.code == 2
    assert complaint in result.err
    assert len(result.err.strip().splitlines()) == 1
