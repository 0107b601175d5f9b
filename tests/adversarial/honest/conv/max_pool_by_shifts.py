"""The maximum of nine shifted slices of the padded input.

problem: max_pool
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        h, w = (x.shape[2] + 1) // 2, (x.shape[3] + 1) // 2
        padded = F.pad(x, (1, 1, 1, 1), value=float("-inf"))
        out = None
        for i in range(3):
            for j in range(3):
                part = padded[:, :, i : i + 2 * h : 2, j : j + 2 * w : 2]
                out = part.clone() if out is None else torch.maximum(out, part, out=out)
        return out
