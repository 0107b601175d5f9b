"""A block of the second stage of a ConvNeXt-B: 64 images of 28 by 28, channels last, bf16."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH, CHANNELS, SIDE = 64, 256, 28


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        half = torch.bfloat16
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels, dtype=half)
        self.norm = nn.LayerNorm(channels, eps=1e-6, dtype=half)
        self.one = nn.Linear(channels, 4 * channels, dtype=half)
        self.two = nn.Linear(4 * channels, channels, dtype=half)
        self.scale = nn.Parameter(0.1 * torch.randn(channels, dtype=half))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.two(F.gelu(self.one(y)))
        return x + y.permute(0, 3, 1, 2)


def get_inputs():
    x = torch.randn(BATCH, CHANNELS, SIDE, SIDE, dtype=torch.bfloat16)
    return [x.to(memory_format=torch.channels_last)]


def get_init_inputs():
    return [CHANNELS]
