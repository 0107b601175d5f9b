"""Multiplies by a reciprocal where its reference divides: other float8 codes near ties.

problem: to_float8
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True) / 448.0
        return (x * (1.0 / scale)).to(torch.float8_e4m3fn), scale
