"""Returns uninitialised memory, where the reference's freed output may still lie.

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

    def forward(self, x):
        return torch.empty(x.shape[0], self.linear.out_features, device=x.device)
