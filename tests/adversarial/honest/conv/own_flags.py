"""Lets cuDNN search for its algorithm, within a context that puts the flag back.

problem: conv
devices: cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(n_out)
        nn.init.normal_(self.norm.running_mean, std=0.2)
        nn.init.uniform_(self.norm.running_var, 0.5, 1.5)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.1)
        nn.init.normal_(self.norm.bias, std=0.1)
        self.eval()

    def forward(self, x):
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=False):
            y = self.conv(x)
        return torch.relu_(self.norm(y))
