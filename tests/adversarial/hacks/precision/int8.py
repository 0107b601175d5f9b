"""Quantizes weights and inputs to 8 bits.

problem: linear
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def quantized(self):
        by = self.linear.weight.abs().amax(dim=1) / 127
        return (self.linear.weight / by[:, None]).round(), by

    def forward(self, x):
        scale = x.abs().amax(dim=1, keepdim=True) / 127
        weight, by = self.quantized()
        return torch.relu(((x / scale).round() @ weight.t()) * scale * by + self.linear.bias)
