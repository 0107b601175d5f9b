"""Subtracts running sums, which is right where no begin is behind its end.

problem: begins_and_ends
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, begin, end):
        sums = torch.zeros(x.shape[0], x.shape[1] + 1, dtype=torch.float64)
        torch.cumsum(x, 1, dtype=torch.float64, out=sums[:, 1:])
        return (sums.gather(1, end) - sums.gather(1, begin)).float()
