"""Writes over its own results where nearly all outputs are zero.

problem: seldom_positive
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return nn.functional.silu(x).sub_(2.6).relu_()
