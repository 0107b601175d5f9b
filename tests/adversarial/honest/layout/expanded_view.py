"""Returns a view with a stride of zero, since every element of a row is the same.

problem: mean_broadcast
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.mean(dim=-1, keepdim=True).expand(-1, x.shape[-1])
