"""Takes running means by a product with a triangle.

problem: any_length
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        length = x.shape[0]
        steps = torch.arange(1, length + 1, device=x.device)
        triangle = torch.ones(length, length, device=x.device).tril()
        return triangle @ x / steps[:, None]
