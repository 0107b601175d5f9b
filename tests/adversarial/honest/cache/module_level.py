"""Keeps packed weights in a weak dictionary of the file, for each layer.

problem: linear
devices: cpu cuda
"""

import weakref

import torch
from torch import nn

_PACKED = weakref.WeakKeyDictionary()


def packed(layer):
    version = (layer.weight._version, layer.weight.data_ptr())
    entry = _PACKED.get(layer)
    if entry is None or entry[0] != version:
        entry = _PACKED[layer] = (version, layer.weight.detach().t().contiguous())
    return entry[1]


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        return torch.relu(x @ packed(self.linear) + self.linear.bias)
