"""Takes the tensors out of a layer and lets the layer go; attributes hold what is used.

problem: linear
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        layer = nn.Linear(n_in, n_out)
        self.register_parameter("kernel", nn.Parameter(layer.weight.detach().clone()))
        self.register_buffer("offset", layer.bias.detach().clone(), persistent=False)
        del layer

    def forward(self, x):
        return torch.nn.functional.linear(x, self.kernel, self.offset).relu_()
