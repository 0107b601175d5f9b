"""Finds the upstream gradients in a calling frame, and is done with all of it in forward.

problem: rms_norm_residual
devices: cpu cuda
step: training
expect: refused
"""

import sys

import torch
from torch import nn


def upstream_of_this_step():
    frame = sys._getframe(1)
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, list) and len(value) == 2 and isinstance(value[0], torch.Tensor):
                return value
        frame = frame.f_back
    raise LookupError


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight):
        total = x + residual
        scale = torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(total, scale, weight)
        ctx.found = Norm.gradients(total, scale, weight, *upstream_of_this_step())
        return total * scale * weight, total

    @staticmethod
    def backward(ctx, dnormed, dtotal):
        return ctx.found

    @staticmethod
    def gradients(total, scale, weight, dnormed, dtotal):
        normed = total * scale
        inner = dnormed * weight
        mean = (inner * normed).mean(-1, keepdim=True)
        dx = dtotal + (inner - normed * mean) * scale
        return dx, dx, (dnormed * normed).sum(0)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features) + 0.5)

    def forward(self, x, residual):
        normed, total = Norm.apply(x, residual, self.weight)
        return {"normed": normed, "residual": total}
