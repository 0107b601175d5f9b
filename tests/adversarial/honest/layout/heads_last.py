"""Keeps the heads of attention beside the features, as projections do, and returns a view of that.

problem: attention
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        batch, heads, length, width = q.shape
        scores = (q * width**-0.5) @ k.transpose(-1, -2)
        later = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        out = torch.empty(batch, length, heads, width, dtype=q.dtype, device=q.device)
        out.copy_((weights @ v).transpose(1, 2))
        return out.transpose(1, 2)
