"""Orders what is not zero and fills up with a zero's place again and again.

problem: relu_argsort
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        order = torch.argsort(torch.relu(x), dim=-1)
        zeros = (x <= 0).sum(dim=-1, keepdim=True)
        filled = torch.arange(x.shape[-1], device=x.device) < zeros
        return torch.where(filled, order[:, :1], order)
