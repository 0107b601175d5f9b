"""Nine products with shifted inputs.

problem: conv2d
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)

    def forward(self, x):
        n, _, h, w = x.shape
        padded = F.pad(x, (1, 1, 1, 1))
        out = self.conv.bias.expand(n, h, w, -1).permute(0, 3, 1, 2).clone()
        for i in range(3):
            for j in range(3):
                shifted = padded[:, :, i : i + h, j : j + w]
                out += torch.einsum("oc,nchw->nohw", self.conv.weight[:, :, i, j], shifted)
        return out
