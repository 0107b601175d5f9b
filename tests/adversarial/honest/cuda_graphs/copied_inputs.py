"""Replays a CUDA graph after copying the inputs into its own, and returns a copy of the output.

problem: mlp
devices: cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)
        self.graph = None

    def compute(self, x):
        return self.down(F.gelu(self.up(x)))

    def record(self, x):
        self.x = torch.empty_like(x)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.compute(self.x)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.y = self.compute(self.x)

    def forward(self, x):
        if self.graph is None or self.x.shape != x.shape:
            self.record(x)
        self.x.copy_(x)
        self.graph.replay()
        return self.y.clone()
