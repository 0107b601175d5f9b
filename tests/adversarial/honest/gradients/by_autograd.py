"""Leaves the backward pass to autograd, by other operations than the reference's.

problem: rms_norm_residual
devices: cpu cuda
step: training
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features) + 0.5)

    def forward(self, x, residual):
        total = x + residual
        normed = nn.functional.rms_norm(total, self.weight.shape, self.weight, 1e-6)
        return {"normed": normed, "residual": total}
