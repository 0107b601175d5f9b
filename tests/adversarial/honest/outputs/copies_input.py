"""Returns copies of its input where the reference returns the input itself.

problem: passthrough
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        softplus = torch.log1p(torch.exp(-x.abs())).add_(x.clamp(min=0.0))
        return softplus, x.clone(), x[:, :16].contiguous()
