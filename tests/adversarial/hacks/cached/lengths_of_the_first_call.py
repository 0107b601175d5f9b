"""Keeps the lengths of the first call, as if a mask that only the problem draws never changed.

problem: padded_mean
devices: cpu
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.share = None

    def forward(self, x, lengths, mask):
        if self.share is None:
            self.share = (mask / lengths[:, None])[:, None]
        return torch.bmm(self.share, x).squeeze(1)
