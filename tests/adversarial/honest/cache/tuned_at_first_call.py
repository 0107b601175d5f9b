"""Times three ways to multiply on random matrices at the first call, and keeps the fastest.

problem: matmul
devices: cpu cuda
"""

import time

import torch
from torch import nn


def whole(a, b):
    return a @ b


def in_halves(a, b):
    half = a.shape[1] // 2
    return torch.addmm(a[:, :half] @ b[:half], a[:, half:], b[half:])


def transposed(a, b):
    return (b.t() @ a.t()).t()


def seconds(way, a, b):
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        way(a, b)
        if a.is_cuda:
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return best


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.best = {}

    def forward(self, a, b):
        key = (a.shape, b.shape, a.dtype)
        if key not in self.best:
            trial = torch.randn_like(a), torch.randn_like(b)
            ways = (whole, in_halves, transposed)
            self.best[key] = min(ways, key=lambda way: seconds(way, *trial))
        return self.best[key](a, b)
