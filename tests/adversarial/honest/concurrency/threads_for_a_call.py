"""Splits the rows over threads that end before the call does.

problem: softmax
devices: cpu
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        with ThreadPoolExecutor(max_workers=2) as pool:
            return torch.cat(list(pool.map(lambda rows: torch.softmax(rows, -1), x.chunk(2))))
