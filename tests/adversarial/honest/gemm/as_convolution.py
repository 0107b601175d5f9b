"""A linear layer as a convolution of size one.

problem: linear
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        y = F.conv1d(x.t()[None], self.linear.weight[..., None], self.linear.bias)
        return torch.relu(y[0]).t()
