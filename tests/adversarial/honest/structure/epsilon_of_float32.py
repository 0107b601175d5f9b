"""The same logarithm with the epsilon of float32 written out.

problem: own_epsilon
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.log(torch.clamp(x, min=0) + 2.0**-23)
