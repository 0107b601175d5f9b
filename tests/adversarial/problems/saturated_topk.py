"""The eight largest of each row where a third is clipped to one value, and where they stand."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        values, indices = torch.topk(nn.functional.hardtanh(2 * x), 8, dim=-1)
        return values, indices


def get_inputs():
    return [torch.randn(64, 512)]
