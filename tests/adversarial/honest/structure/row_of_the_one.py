"""Takes the row of the only True.

problem: one_hot_rows
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(64, 128))

    def forward(self, chosen):
        return self.table[chosen.view(torch.uint8).argmax(-1)]
