"""Layers with complex weights in the frequency domain."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, c, m):
        super().__init__()
        self.m = m
        self.w = nn.ParameterList(
            [nn.Parameter(torch.randn(c, c, m, dtype=torch.cfloat) / c) for _ in range(4)]
        )
        self.k = nn.ModuleList([nn.Conv1d(c, c, 1) for _ in range(4)])

    def forward(self, x):
        n = x.shape[-1]
        for w, k in zip(self.w, self.k, strict=True):
            z = torch.fft.rfft(x)
            o = torch.zeros(*z.shape[:1], w.shape[1], z.shape[-1], dtype=z.dtype)
            o[..., : self.m] = torch.einsum("bim,iom->bom", z[..., : self.m], w)
            x = F.instance_norm(F.gelu(torch.fft.irfft(o, n=n) + k(x)))
        return x


def get_inputs():
    return [torch.randn(2, 16, 512)]


def get_init_inputs():
    return [16, 24]
