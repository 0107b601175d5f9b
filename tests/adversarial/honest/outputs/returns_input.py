"""Returns its input and a view of it, because the reference does.

problem: passthrough
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        softplus = torch.logaddexp(x, torch.zeros((), dtype=x.dtype, device=x.device))
        return softplus, x, x.narrow(1, 0, 16)
