"""The gradient in closed form.

problem: forces
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, pos):
        return -pos / torch.linalg.vector_norm(pos, dim=-1, keepdim=True)
