"""GroupNorm, Swish and a 3x3 convolution.

The block that the U-Nets of diffusion models (DDPM, Stable Diffusion) repeat dozens of times per
denoising step.
"""

import torch
import torch.nn.functional as F
from torch import nn

batch_size = 1
channels = 64
groups = 8
size = 32


class Model(nn.Module):
    def __init__(self, channels: int, groups: int):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.1)
        nn.init.normal_(self.norm.bias, std=0.1)
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(F.silu(self.norm(x)))


def get_inputs():
    return [torch.randn(batch_size, channels, size, size)]


def get_init_inputs():
    return [channels, groups]
