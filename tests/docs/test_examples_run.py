"""The Python examples run, with verdicts that are computed and a model that needs no network."""

import itertools
import runpy
from pathlib import Path

import pytest
from hashed import Judge

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
ANSWER = """
from torch import nn


class ModelNew(nn.Module):
    number = {number}

    def __init__(self, width=128):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))
"""


@pytest.fixture
def options(tmp_path):
    numbers = itertools.count()

    def answer(prompt):
        return f"```python{ANSWER.format(number=next(numbers))}```"

    return {"run": tmp_path / "run", "evaluator": Judge(), "model": answer, "steps": 4}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_makes_a_run(example, options, capsys):
    main = runpy.run_path(str(example))["main"]
    if example.stem == "own_model":
        del options["model"]
    run = main(**options)
    assert 1 <= len(run.nodes) <= 4
    assert capsys.readouterr().out
