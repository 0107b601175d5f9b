"""Scales rows into the range of float8 and rounds them."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True) / 448.0
        return (x / scale).to(torch.float8_e4m3fn), scale


def get_inputs():
    return [torch.randn(512, 256)]
