"""Merges BatchNorm into the convolution in the constructor, as one deploys a network.

problem: conv
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        conv = nn.Conv2d(n_in, n_out, kernel_size=3, padding=1, bias=False)
        norm = nn.BatchNorm2d(n_out)
        nn.init.normal_(norm.running_mean, std=0.2)
        nn.init.uniform_(norm.running_var, 0.5, 1.5)
        nn.init.normal_(norm.weight, mean=1.0, std=0.1)
        nn.init.normal_(norm.bias, std=0.1)
        conv.eval()
        norm.eval()
        self.fused = torch.nn.utils.fuse_conv_bn_eval(conv, norm)

    def forward(self, x):
        return self.fused(x).relu_()
