"""Takes the size of a row from its norm, and writes over its own results.

problem: gated_rms_norm
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x, gate):
        squares = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_() / x.shape[-1]
        out = nn.functional.silu(gate)
        return out.mul_(x).mul_(squares.add_(1e-5).rsqrt_()).mul_(self.weight)
