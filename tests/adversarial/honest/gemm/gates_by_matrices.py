"""Makes products of matrices of the convolutions with one place each.

problem: squeeze_excite
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels, fewer):
        super().__init__()
        self.down = nn.Conv2d(channels, fewer, 1)
        self.up = nn.Conv2d(fewer, channels, 1)

    def forward(self, x):
        means = x.flatten(2).mean(2)
        hidden = torch.addmm(self.down.bias, means, self.down.weight.flatten(1).T).relu_()
        gates = torch.addmm(self.up.bias, hidden, self.up.weight.flatten(1).T).sigmoid_()
        return x * gates[..., None, None]
