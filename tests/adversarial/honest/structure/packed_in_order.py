"""Splits the packed rows by their lengths, which lie one after the other.

problem: ragged_rows
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, lengths, begins):
        sizes = lengths.tolist()
        return torch.stack([rows.sum(0) for rows in x[: sum(sizes)].split(sizes)])
