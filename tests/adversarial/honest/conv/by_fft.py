"""Multiplies spectra.

problem: conv2d
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)

    def forward(self, x):
        h, w = x.shape[2:]
        size = (h + 2, w + 2)
        data = torch.fft.rfft2(x, s=size)
        weight = torch.fft.rfft2(self.conv.weight.flip(2, 3), s=size)
        y = torch.fft.irfft2(torch.einsum("nchw,ochw->nohw", data, weight), s=size)
        return y[:, :, 1 : h + 1, 1 : w + 1] + self.conv.bias[:, None, None]
