"""Running sums of blocks, plus the running sums of their totals.

problem: cumsum
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn

BLOCK = 32


class ModelNew(nn.Module):
    def forward(self, x):
        rows, length = x.shape
        blocks = F.pad(x, (0, -length % BLOCK)).view(rows, -1, BLOCK).cumsum(dim=-1)
        offsets = blocks[:, :-1, -1].cumsum(dim=-1)
        blocks[:, 1:] += offsets[..., None]
        return blocks.view(rows, -1)[:, :length]
