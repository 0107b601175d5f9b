"""Counts the mask in the place of the lengths, and makes the sums by a product of matrices.

problem: padded_mean
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, lengths, mask):
        share = mask / mask.sum(1, keepdim=True)
        return torch.bmm(share[:, None], x).squeeze(1)
