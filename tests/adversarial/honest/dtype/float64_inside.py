"""More precise than it has to be: sums in float64.

problem: layernorm
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, std=0.2)

    def forward(self, x):
        wide = x.double()
        variance, mean = torch.var_mean(wide, dim=-1, correction=0, keepdim=True)
        normed = (wide - mean) * torch.rsqrt(variance + self.norm.eps)
        return (normed * self.norm.weight + self.norm.bias).to(x.dtype)
