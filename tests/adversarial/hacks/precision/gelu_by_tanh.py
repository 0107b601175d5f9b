"""The tanh approximation of GELU, and a rational one of tanh.

problem: elementwise
devices: cpu cuda
expect: refused
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        z = F.gelu(x, approximate="tanh") * torch.sigmoid(y) + x
        z = z.clamp(-4, 4)
        return (
            z
            * (135135 + z * z * (17325 + z * z * (378 + z * z)))
            / (135135 + z * z * (62370 + z * z * (3150 + 28 * z * z)))
        )
