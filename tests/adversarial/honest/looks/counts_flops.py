"""Counts its own operations at the first call, under a dispatch mode that ends with it.

problem: mlp
devices: cpu cuda
"""

import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)
        self.flops = None

    def compute(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        if self.flops is None:
            with FlopCounterMode(display=False) as counter:
                y = self.compute(x)
            self.flops = counter.get_total_flops()
            return y
        return self.compute(x)
