import pytest
import torch
from torch.utils import flop_counter

from adaexplore.core.problem import Problem
from adaexplore.evaluate.timing.operations import operations_of
from adaexplore.sandbox.user.user_code import Instance

SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn

class Model(nn.Module):
    def forward(self, q, k, v):
        return {result}

def get_inputs():
    return [torch.randn(2, 8, 16, 32), *torch.randn(2, 2, {heads}, 24, 32)]
"""


@pytest.fixture
def operations(tmp_path):
    def operations(result, heads=8):
        source = SOURCE.format(result=result, heads=heads)
        instance = Instance.of(Problem("attention", source, "cpp", "cpu"), tmp_path)
        return operations_of(instance, instance.inputs(0))

    return operations


ALL_PAIRS = 2 * 2 * 8 * 16 * 24 * (32 + 32)


def test_both_products_of_an_attention_count(operations):
    assert operations("F.scaled_dot_product_attention(q, k, v)") == ALL_PAIRS


def test_query_heads_that_share_keys_count_each(operations):
    shared = "F.scaled_dot_product_attention(q, k, v, enable_gqa=True)"
    assert operations(shared, heads=2) == ALL_PAIRS


def test_a_causal_one_counts_one_side_of_the_diagonal(operations):
    causal = operations("F.scaled_dot_product_attention(q, k, v, is_causal=True)")
    assert causal == ALL_PAIRS * sum(range(1, 17)) // (16 * 24)


def test_what_has_no_formula_is_unknown_and_no_error(operations, monkeypatch):
    def incompatible(*_, **__):
        raise AssertionError("sdpa_flop_count: query/key/value shapes are incompatible")

    monkeypatch.setitem(flop_counter.flop_registry, torch.ops.aten.bmm, incompatible)
    assert operations("q @ k.mT") is None
