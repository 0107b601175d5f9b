"""Quantises rows to int8 by their largest element."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True) / 127.0
        codes = torch.round(x / scale).clamp(-128, 127).to(torch.int8)
        return x * 2.0, codes, scale


def get_inputs():
    return [torch.randn(1024, 512)]
