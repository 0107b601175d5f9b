"""Sorts rows by segment and adds them with a compensation for what each step loses.

problem: segment_sum
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, segments):
        super().__init__()
        self.segments = segments

    def forward(self, x, index):
        count = torch.bincount(index, minlength=self.segments)
        longest = int(count.max())
        order = torch.argsort(index, stable=True)
        start = torch.cumsum(count, 0) - count
        total = torch.zeros(self.segments, x.shape[1], dtype=x.dtype, device=x.device)
        lost = torch.zeros_like(total)
        for i in range(longest):
            there = (count > i)[:, None]
            row = x[order[(start + i).clamp_(max=len(order) - 1)]]
            y = torch.where(there, row, 0.0) - lost
            new = total + y
            lost = (new - total) - y
            total = new
        return total
