"""The largest value in each connected region of a mask, step by step."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, mask, x):
        inside = mask.to(x.dtype)
        x = x.sigmoid() * inside
        for _ in range(128):
            x = torch.nn.functional.max_pool2d(x, 3, 1, 1) * inside
        return x


def get_inputs():
    return [torch.rand(1, 1, 64, 64) < 0.2, torch.randn(1, 1, 64, 64)]
