"""Means and squared deviations of blocks, merged by Chan's formula.

problem: layernorm
devices: cpu cuda
"""

import torch
from torch import nn

BLOCKS = 8


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, std=0.2)

    def forward(self, x):
        size = x.shape[-1] // BLOCKS
        count, mean, m2 = 0, 0.0, 0.0
        for block in x.split(size, dim=-1):
            own = block.mean(dim=-1, keepdim=True)
            delta = own - mean
            total = count + size
            m2 = m2 + (block - own).square_().sum(dim=-1, keepdim=True)
            m2 = m2 + delta * delta * (count * size / total)
            mean = mean + delta * (size / total)
            count = total
        scale = torch.rsqrt(m2 / count + self.norm.eps)
        return torch.addcmul(self.norm.bias, (x - mean) * scale, self.norm.weight)
