"""A 3 x 3 convolution of a ResNet, bias and ReLU, channels last, bf16: a product in disguise."""

import torch
from torch import nn

IMAGES, CHANNELS, SIDE = 32, 256, 56


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, dtype=torch.bfloat16)
        self.conv.to(memory_format=torch.channels_last)

    def forward(self, x):
        return torch.relu(self.conv(x))


def get_inputs():
    x = torch.randn(IMAGES, CHANNELS, SIDE, SIDE, dtype=torch.bfloat16)
    return [x.to(memory_format=torch.channels_last)]


def get_init_inputs():
    return [CHANNELS]
