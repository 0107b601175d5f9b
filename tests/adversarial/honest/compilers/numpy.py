"""NumPy does the work; the output shares memory with an array.

problem: mean_broadcast
devices: cpu
"""

import numpy as np
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        mean = x.numpy().mean(axis=-1, dtype=np.float64, keepdims=True).astype(np.float32)
        return torch.from_numpy(np.repeat(mean, x.shape[-1], axis=-1))
