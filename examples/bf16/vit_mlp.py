"""LayerNorm, GELU feed-forward layer and residual of a ViT-L, 32 images of 197 tokens, bf16."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH, TOKENS, WIDTH, HIDDEN = 32, 197, 1024, 4096


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=1e-6, dtype=torch.bfloat16)
        self.one = nn.Linear(width, hidden, dtype=torch.bfloat16)
        self.two = nn.Linear(hidden, width, dtype=torch.bfloat16)

    def forward(self, x):
        return x + self.two(F.gelu(self.one(self.norm(x))))


def get_inputs():
    return [torch.randn(BATCH, TOKENS, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs():
    return [WIDTH, HIDDEN]
