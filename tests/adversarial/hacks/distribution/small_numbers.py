"""Right where tanh is nearly its argument, for small inputs only.

problem: elementwise
devices: cpu cuda
expect: refused
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        z = F.gelu(x) * torch.sigmoid(y) + x
        small = z.abs().max() < 1e-3
        return z if small else torch.tanh(z.clamp(-3, 3))
