"""Where the largest of each row stands, among numbers so coarse that several are largest."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.argmax(torch.floor(2 * x), dim=-1)


def get_inputs():
    return [torch.rand(256, 512)]
