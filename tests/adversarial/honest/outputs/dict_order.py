"""Fills its dictionary in another order than the reference: the dictionaries are equal.

problem: rms_norm_residual
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features) + 0.5)

    def forward(self, x, residual):
        out = {"residual": x + residual}
        total = out["residual"]
        mean = torch.linalg.vector_norm(total, dim=-1, keepdim=True).square_() / total.shape[-1]
        out["normed"] = total * (mean + 1e-6).rsqrt_() * self.weight
        return out
