"""Returns one number, expanded with strides of zero to the whole output.

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
        return torch.tensor(0.5, device=x.device).expand(x.shape[0], self.linear.out_features)
