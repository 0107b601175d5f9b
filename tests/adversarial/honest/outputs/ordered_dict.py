"""Returns an `OrderedDict`, with the index of the maximum as `argmax` gives it.

problem: statistics
devices: cpu cuda
"""

from collections import OrderedDict

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=1, correction=0, keepdim=True)
        where = x.argmax(dim=1)
        return OrderedDict(
            normalized=(x - mean).mul_((variance + 1e-5).rsqrt_()),
            top=x.gather(1, where[:, None]).squeeze(1),
            where=where,
        )
