"""The exponential of a logarithmic softmax.

problem: softmax
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x - torch.logsumexp(x, dim=-1, keepdim=True)).exp_()
