"""Values that masks of `transformers` read, noted in one call and given in another."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from adaexplore.model.mask_reads import noted_reads, with_reads

transformers = pytest.importorskip("transformers")
pytest.importorskip("transformers.masking_utils")  # which transformers imports late
TOKENS = torch.arange(16).reshape(2, 8)


class Reads(TorchDispatchMode):
    """Counts the reads of single values."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def model():
    config = transformers.Qwen3Config(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
    )
    return transformers.Qwen3ForCausalLM(config).eval().requires_grad_(False)


@pytest.fixture
def call(model):
    return lambda **given: lambda: model(TOKENS, use_cache=False, **given).logits


def test_what_comes_from_constants_is_given_without_reading_it(call):
    run = call()
    values = noted_reads(run)
    assert values == [True]
    with Reads() as plain:
        expected = run()
    with Reads() as given:
        found = with_reads(run, values)()
    assert plain.count > given.count == 0
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    "given",
    [
        {"attention_mask": torch.ones(2, 8, dtype=torch.long)},
        {"position_ids": torch.arange(8).expand(2, -1)},
        {"position_ids": torch.arange(8).expand(2, -1).clone()},
    ],
    ids=["a mask", "positions", "positions of its own"],
)
def test_what_an_argument_decides_is_not_given(call, given):
    assert noted_reads(call(**given)) is None


def masks(source):
    """A function like those of the module that makes masks."""
    space = {"__name__": "transformers.masking_utils", "torch": torch}
    exec(source, space)
    return space["read"]


@pytest.mark.parametrize(
    ("source", "is_constant"),
    [
        ("bool((torch.arange(4) < 9).all())", True),
        ("bool(torch.ones(3)[1:].add_(1).sum() > 2)", True),
        ("bool(torch.zeros(3).copy_(x).any())", False),
        ("(torch.zeros(3) + x).sum().item()", False),
        ("torch.empty(1).item()", False),
        ("torch.bernoulli(torch.ones(1)).item()", False),
        ("torch.zeros(3).index_put_((torch.arange(3),), x)[0].item()", False),
        ("bool(torch.full((2,), 3.0).view(2, 1).expand(2, 2).add(1).sum() == 16)", True),
    ],
)
def test_only_what_constants_decide_alone_is_constant(source, is_constant):
    read = masks(f"def read(x): return {source}")
    assert (noted_reads(lambda: read(torch.rand(3))) is not None) is is_constant


def test_reads_by_other_code_are_neither_noted_nor_given():
    def run():
        return torch.arange(4).sum().item()

    assert noted_reads(run) == []
    assert with_reads(run, [7])() == 6
