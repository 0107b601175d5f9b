"""Running sums as a product with a triangle of ones.

problem: cumsum
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        return x @ torch.ones(n, n, dtype=x.dtype, device=x.device).triu_()
