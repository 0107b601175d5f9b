"""Adds up the taps of a filter that looks back, each a shifted signal.

problem: depthwise
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, taps, padding=taps - 1, groups=channels)

    def forward(self, x):
        weight, bias = self.conv.weight[:, 0], self.conv.bias
        taps = weight.shape[1]
        out = torch.addcmul(bias[:, None], weight[:, -1:], x)
        for back in range(1, taps):
            out[..., back:].addcmul_(weight[:, taps - 1 - back, None], x[..., :-back])
        return nn.functional.silu(out, inplace=True)
