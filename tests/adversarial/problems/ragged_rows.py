"""Sums of packed sequences, with the length of each and where it begins."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, lengths, begins):
        at = torch.arange(64, device=x.device)
        inside = at < lengths[:, None]
        places = (begins[:, None] + at).clamp(max=x.shape[0] - 1)
        return (x[places] * inside[..., None]).sum(1)


def get_inputs():
    lengths = torch.randint(1, 65, (16,))
    return [torch.randn(1024, 64), lengths, lengths.cumsum(0) - lengths]
