"""Returns zeros, which is right: on a problem whose output is the same for every input.

problem: collapsed
devices: cpu cuda
expect: labelled
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        return torch.zeros(x.shape[0], 1, device=x.device)
