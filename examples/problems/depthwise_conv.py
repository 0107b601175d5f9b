"""Depthwise separable convolution: per-channel 3x3, then 1x1, each with BatchNorm and ReLU6.

The block of MobileNet, in inference (eval mode, set by the constructor).
"""

import torch
from torch import nn

batch_size = 1
channels = 64
out_channels = 128
size = 28


def normalized(channels: int) -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(channels)
    nn.init.normal_(norm.running_mean, std=0.2)
    nn.init.uniform_(norm.running_var, 0.5, 1.5)
    return norm


class Model(nn.Module):
    def __init__(self, channels: int, out_channels: int):
        super().__init__()
        self.depthwise = nn.Conv2d(
            channels, channels, kernel_size=3, padding=1, groups=channels, bias=False
        )
        self.norm1 = normalized(channels)
        self.pointwise = nn.Conv2d(channels, out_channels, kernel_size=1, bias=False)
        self.norm2 = normalized(out_channels)
        self.activation = nn.ReLU6()
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.activation(self.norm1(self.depthwise(x)))
        return self.activation(self.norm2(self.pointwise(x)))


def get_inputs():
    return [torch.randn(batch_size, channels, size, size)]


def get_init_inputs():
    return [channels, out_channels]
