"""Writes its outputs into two tensors in turn: of three that a user keeps, one is overwritten.

problem: linear
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.outputs = {}
        self.turn = 0

    def forward(self, x):
        self.turn ^= 1
        out = self.outputs.get(self.turn)
        if out is None or out.shape[0] != x.shape[0]:
            out = x.new_empty(x.shape[0], self.linear.out_features)
            self.outputs[self.turn] = out
        return torch.addmm(self.linear.bias, x, self.linear.weight.t(), out=out).relu_()
