"""The library's own loss, which refuses labels that are none.

problem: void_labels
devices: cpu
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return F.cross_entropy(x, y, ignore_index=255)
