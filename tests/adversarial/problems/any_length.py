"""A running mean over sequences whose length is drawn as well."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        steps = torch.arange(1, x.shape[0] + 1, device=x.device)
        return x.cumsum(0) / steps[:, None]


def get_inputs():
    return [torch.randn(int(torch.randint(100, 200, ())), 64)]
