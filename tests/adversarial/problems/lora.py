"""A linear layer with a low-rank adapter (Hu et al. 2021), whose second factor begins at zero."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, rank):
        super().__init__()
        self.base = nn.Linear(features, features)
        self.lora_a = nn.Linear(features, rank, bias=False)
        self.lora_b = nn.Linear(rank, features, bias=False)
        nn.init.zeros_(self.lora_b.weight)

    def forward(self, x):
        return self.base(x) + 2.0 * self.lora_b(torch.tanh(self.lora_a(x)))


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128, 512]
