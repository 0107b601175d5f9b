"""Counts the calls in flight, with `try` and `finally`.

problem: softmax
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.in_flight = 0

    def forward(self, x):
        self.in_flight += 1
        try:
            shifted = x - x.amax(dim=-1, keepdim=True)
            shifted.exp_()
            return shifted.div_(shifted.sum(dim=-1, keepdim=True))
        finally:
            self.in_flight -= 1
