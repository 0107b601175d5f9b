"""The problem that judges on a real GPU are tried on."""

DEVICE = "cuda:0"
REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(512, 512) / 22)

    def forward(self, x):
        return torch.relu(x @ self.weight) + 1

def get_inputs():
    return [torch.randn(4096, 512)]
"""
