"""Returns two views of one allocation.

problem: rms_norm_residual
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features) + 0.5)

    def forward(self, x, residual):
        normed, total = torch.empty((2, *x.shape), dtype=x.dtype, device=x.device)
        torch.add(x, residual, out=total)
        scale = torch.rsqrt((total * total).mean(dim=-1, keepdim=True) + 1e-6)
        torch.mul(total, scale, out=normed)
        normed *= self.weight
        return {"normed": normed, "residual": total}
