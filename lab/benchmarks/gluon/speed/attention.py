"""Causal attention of 16 heads of 128 over 4,096 tokens, four sequences, bf16."""

import torch
import torch.nn.functional as F
from torch import nn

SEQUENCES, HEADS, TOKENS, WIDTH = 4, 16, 4096, 128


class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs():
    return [torch.randn(SEQUENCES, HEADS, TOKENS, WIDTH, dtype=torch.bfloat16) for _ in range(3)]
