"""Updates its own running statistics in place, as the reference does.

problem: batch_norm_train
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.1)

    def forward(self, x):
        norm = self.norm
        variance, mean = torch.var_mean(x, dim=(0, 2, 3), correction=0)
        count = x.numel() // x.shape[1]
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)
        norm.num_batches_tracked += 1
        scale = norm.weight * torch.rsqrt(variance + norm.eps)
        x = x - mean[:, None, None]
        return x.mul_(scale[:, None, None]).add_(norm.bias[:, None, None])
