"""Points eight times at one of the largest.

problem: saturated_topk
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, indices = torch.topk(nn.functional.hardtanh(2 * x), 8, dim=-1)
        return values, indices[:, :1].repeat(1, 8)
