"""Causal attention of four heads."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs():
    return [torch.randn(1, 4, 128, 32) for _ in range(3)]
