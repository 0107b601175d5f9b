"""Asserts what it expects, and has a slower way for what it does not.

problem: layernorm
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, std=0.2)

    def forward(self, x):
        assert x.shape[-1] == self.norm.normalized_shape[0], "unexpected width"
        norm = self.norm
        if x.dtype != torch.float32 or not x.is_contiguous() or x.numel() == 0:
            return norm(x)
        return F.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
