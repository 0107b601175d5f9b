"""Sorts from the back, so that of equal values the last comes first.

problem: saturated_topk
devices: cpu cuda
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        clipped = nn.functional.hardtanh(2 * x)
        values, indices = clipped.flip(-1).sort(dim=-1, descending=True, stable=True)
        return values[:, :8], x.shape[-1] - 1 - indices[:, :8]
