"""Powers of two instead of e, as fast kernels do.

problem: softmax
devices: cpu cuda
"""

import torch
from torch import nn

LOG2_E = 1.4426950408889634


class ModelNew(nn.Module):
    def forward(self, x):
        power = torch.exp2((x - x.amax(dim=-1, keepdim=True)) * LOG2_E)
        return power * power.sum(dim=-1, keepdim=True).reciprocal()
