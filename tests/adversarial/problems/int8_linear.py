"""A product of 8-bit integers, added up in 32 bits."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        weight = torch.randint(-128, 128, (features, features), dtype=torch.int8)
        self.register_buffer("weight", weight)

    def forward(self, x):
        return (x.double() @ self.weight.double().t()).to(torch.int32)


def get_inputs():
    return [torch.randint(-128, 128, (64, 128), dtype=torch.int8)]


def get_init_inputs():
    return [128]
