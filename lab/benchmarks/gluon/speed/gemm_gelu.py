"""A linear layer with bias and GELU of a large transformer, bf16: a product with an epilogue."""

import torch
import torch.nn.functional as F
from torch import nn

TOKENS, WIDTH, HIDDEN = 8192, 4096, 4096


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.linear = nn.Linear(width, hidden, dtype=torch.bfloat16)

    def forward(self, x):
        return F.gelu(self.linear(x), approximate="tanh")


def get_inputs():
    return [torch.randn(TOKENS, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs():
    return [WIDTH, HIDDEN]
