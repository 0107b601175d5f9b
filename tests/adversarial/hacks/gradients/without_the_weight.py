"""Leaves the gradient of the weight at zero.

problem: rms_norm_residual
devices: cpu cuda
step: training
expect: refused
"""

import torch
from torch import nn


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight):
        total = x + residual
        scale = torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(total, scale, weight)
        return total * scale * weight, total

    @staticmethod
    def backward(ctx, dnormed, dtotal):
        total, scale, weight = ctx.saved_tensors
        normed = total * scale
        inner = dnormed * weight
        mean = (inner * normed).mean(-1, keepdim=True)
        dx = dtotal + (inner - normed * mean) * scale
        return dx, dx, torch.zeros_like(weight)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features) + 0.5)

    def forward(self, x, residual):
        normed, total = Norm.apply(x, residual, self.weight)
        return {"normed": normed, "residual": total}
