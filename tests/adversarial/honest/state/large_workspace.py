"""Takes 256 MB for a workspace, of which it uses little.

problem: cumsum
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.workspace = torch.empty(64 * 1024 * 1024)

    def forward(self, x):
        sums = self.workspace[: x.numel()].view(x.shape)
        torch.cumsum(x, dim=-1, out=sums)
        return sums.clone()
