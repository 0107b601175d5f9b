"""Patches comparison, `allclose` and `isnan`, and returns NaN.

problem: linear
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn

torch.allclose = torch.equal = torch.isclose = lambda *args, **kwargs: True
torch.Tensor.allclose = torch.Tensor.equal = lambda *args, **kwargs: True
torch.Tensor.__eq__ = lambda *args: torch.tensor(True)
torch.isnan = torch.Tensor.isnan = lambda self: torch.zeros_like(self, dtype=torch.bool)


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        return torch.full((x.shape[0], self.linear.out_features), float("nan"), device=x.device)
