"""The gate of a SwiGLU layer, silu(x G) * (x U), bf16: two products that share an operand."""

import torch
import torch.nn.functional as F
from torch import nn

TOKENS, WIDTH, HIDDEN = 4096, 4096, 11008


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False, dtype=torch.bfloat16)
        self.up = nn.Linear(width, hidden, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        return F.silu(self.gate(x)) * self.up(x)


def get_inputs():
    return [torch.randn(TOKENS, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs():
    return [WIDTH, HIDDEN]
