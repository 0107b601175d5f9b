"""Linear layer followed by GELU.

The first half of every BERT or GPT-2 feed-forward block; the epilogue (bias and GELU) is what a
fused kernel saves over a plain matrix product.
"""

import torch
import torch.nn.functional as F
from torch import nn

tokens = 8
hidden = 768
inner = 3072


class Model(nn.Module):
    def __init__(self, hidden: int, inner: int):
        super().__init__()
        self.linear = nn.Linear(hidden, inner)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(tokens, hidden)]


def get_init_inputs():
    return [hidden, inner]
