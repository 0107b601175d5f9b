"""`torch.compile` with CUDA graphs, for all to see; its output is copied out of the graph.

problem: mlp
devices: cuda
timeout_s: 120
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)
        self.compiled = torch.compile(self.compute, mode="reduce-overhead")

    def compute(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        return self.compiled(x).clone()
