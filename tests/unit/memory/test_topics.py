import pytest

from adaexplore.memory.topics import implied


@pytest.mark.parametrize(
    ("source", "topics"),
    [
        ("self.norm = nn.LayerNorm(64)", {"layer_norm", "var", "tl.sum"}),
        ("self.conv = nn.Conv2d(3, 8, 3)", {"conv", "tl.dot", "matmul"}),
        ("return F.gelu(x)", {"gelu", "tl.erf"}),
        ("self.act = nn.GELU()", {"gelu", "tl.erf"}),
        ("return a @ b", {"tl.dot"}),
        ("return torch.nn.functional.scaled_dot_product_attention(q, k, v)", {"softmax", "tl.dot"}),
        ("self.loss = nn.CrossEntropyLoss()", {"softmax", "tl.exp"}),
        ("return x.cumsum(-1)", {"cumsum", "tl.cumsum"}),
        ("return [torch.randn(8).half()]", {"fp16"}),
    ],
)
def test_what_a_kernel_for_it_will_use(source, topics):
    assert topics <= set(implied(source).split())


def test_a_decorator_is_no_product():
    assert "tl.dot" not in implied("@property\ndef forward(self, x): return x + 1").split()


def test_what_every_reference_names_tells_nothing():
    source = "import torch\nfrom torch import nn\nclass Model(nn.Module):\n    x = torch.rand(3)"
    assert set(implied(source).split()) == {"x"}
