"""A custom `autograd.Function`, with a backward pass that nobody calls here.

problem: bias_swish
devices: cpu cuda
"""

import torch
from torch import nn


class BiasSwish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        y = x + bias
        gate = torch.sigmoid(y)
        ctx.save_for_backward(y, gate)
        return y * gate

    @staticmethod
    def backward(ctx, grad):
        y, gate = ctx.saved_tensors
        local = grad * (gate + y * gate * (1.0 - gate))
        return local, local.sum(dim=0)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return BiasSwish.apply(x, self.bias)
