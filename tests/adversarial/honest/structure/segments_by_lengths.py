"""The lengths repeat each segment's number.

problem: segments_of_four
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, cu):
        n = cu[1:] - cu[:-1]
        seg = torch.repeat_interleave(torch.arange(len(n)), n)
        out = torch.zeros(len(n), x.shape[1]).index_add_(0, seg, x)
        return out / n.clamp(min=1)[:, None]
