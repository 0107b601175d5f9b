"""Goes over blocks once with a running maximum and a running sum.

problem: softmax
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        peak = torch.full_like(x[:, :1], float("-inf"))
        total = torch.zeros_like(peak)
        for block in x.split(512, dim=-1):
            new = torch.maximum(peak, block.amax(dim=-1, keepdim=True))
            total = total * torch.exp(peak - new) + (block - new).exp_().sum(-1, keepdim=True)
            peak = new
        return (x - peak).exp_().div_(total)
