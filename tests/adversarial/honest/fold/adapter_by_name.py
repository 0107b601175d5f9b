"""Keeps an adapter's weights under their names, and multiplies both products at once.

problem: lora
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, rank):
        super().__init__()
        self.base = nn.Linear(features, features)
        self.lora_a = nn.Linear(features, rank, bias=False)
        self.lora_b = nn.Linear(rank, features, bias=False)
        self.lora_b.weight.data.zero_()

    def forward(self, x):
        hidden = torch.tanh(x @ self.lora_a.weight.t())
        return torch.addmm(self.base(x), hidden, self.lora_b.weight.t(), alpha=2.0)
