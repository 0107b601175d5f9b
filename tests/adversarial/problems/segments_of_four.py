"""Means of segments, by the offsets of a small batch."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, cu):
        pos = torch.arange(x.shape[0])
        seg = torch.searchsorted(cu[1:], pos, right=True).clamp(max=cu.numel() - 2)
        out = torch.zeros(cu.numel() - 1, x.shape[1], dtype=x.dtype).index_add_(0, seg, x)
        n = (cu[1:] - cu[:-1]).clamp(min=1)
        return out / n[:, None]


def get_inputs():
    cuts = torch.randperm(255)[:3].add(1).sort().values
    return [torch.randn(256, 64), torch.cat([torch.tensor([0]), cuts, torch.tensor([256])])]
