"""References at their full size, on tensors without data."""

import pytest

from adaexplore.core.problem import Problem
from adaexplore.evaluate.offline.full_size import full_size

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return {result}

def get_inputs():
    return [torch.randn(8, 8)]
"""


@pytest.mark.parametrize(
    ("result", "operator"),
    [("torch.sparse.mm(x.to_sparse(), x)", "aten::_to_sparse"), ("x.nonzero()", "torch.nonzero")],
)
def test_what_is_unknown_without_data_is_said_in_one_short_line(
    result, operator, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    source = SOURCE.format(result=result)
    why = full_size(Problem("example", source, "triton", "cpu", target="sm_90")).why
    assert why.startswith(
        f"example.py, line 7: without data, PyTorch does not know what {operator} returns"
    )
    assert why.endswith("judge it on a GPU: --device cuda")
    assert len(why) < 200
