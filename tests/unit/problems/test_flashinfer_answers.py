import json

import pytest
import torch
from small_dataset import DEFINITION, KERNEL, NAME, write_flashinfer

from adaexplore.problems.benchmarks.flashinfer import FLASHINFER

RETURNS = "def run(scale, x, y):\n    return x + scale * y, x.new_tensor(len(x)).long()\n"
WRITES = """
import torch

def run(scale, x, y, sum, rows_out):
    assert sum.shape == x.shape and sum.dtype == torch.float32
    assert rows_out.shape == () and rows_out.dtype == torch.int64
    torch.add(x, y, alpha=float(scale), out=sum)
    rows_out.fill_(x.shape[0])
"""


@pytest.fixture
def data(tmp_path):
    return write_flashinfer(tmp_path / "data")


@pytest.fixture
def answer(tmp_path, data):
    """Return a function that reads a solution with these sources and this specification."""

    def read(sources, *, data=data, **spec):
        (tmp_path / "one.json").write_text(
            json.dumps(
                {
                    "definition": NAME,
                    "spec": {"language": "python", "entry_point": "main.py::run", **spec},
                    "sources": [{"path": path, "content": text} for path, text in sources.items()],
                }
            )
        )
        [found] = FLASHINFER.answers(tmp_path / "one.json", data)
        return found

    return read


@pytest.mark.parametrize(
    ("source", "spec"),
    [
        (RETURNS, {"destination_passing_style": False}),
        (WRITES, {}),
        (WRITES, {"language": "triton"}),
    ],
)
def test_a_function_becomes_a_module(answer, source, spec):
    found = answer({"main.py": source}, **spec)
    assert not found.unreadable
    space = {}
    exec(compile(found.source, "answer", "exec"), space)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    total, rows = space["ModelNew"]()(torch.tensor(0.5), x, y)
    assert torch.allclose(total, x + 0.5 * y)
    assert rows == 3


def test_our_own_kernel_is_taken_as_it_is(answer):
    assert answer({"kernel.py": KERNEL, "main.py": ""}).source == KERNEL


@pytest.mark.parametrize(
    ("sources", "spec", "reason"),
    [
        ({"main.py": WRITES, "other.py": ""}, {}, "several files"),
        ({"main.cu": ""}, {"language": "cuda", "entry_point": "main.cu::run"}, "written in cuda"),
        ({"main.py": WRITES}, {"data": None}, "definition is not in the data"),
    ],
)
def test_an_answer_that_cannot_be_judged_says_why(answer, sources, spec, reason):
    assert reason in answer(sources, **spec).unreadable


def test_outputs_whose_sizes_do_not_follow_from_the_inputs_are_not_written_to(answer, data):
    [file] = data.rglob("*.json")
    outputs = {"sum": {"shape": ["more"], "dtype": "float32"}}
    axes = {**DEFINITION["axes"], "more": {"type": "var"}}
    file.write_text(json.dumps({**DEFINITION, "outputs": outputs, "axes": axes}))
    assert "do not follow from its inputs" in answer({"main.py": WRITES}).unreadable
