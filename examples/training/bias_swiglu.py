"""Bias and SwiGLU over the packed output of a joint gate and up projection, in bf16.

The fused block of Megatron-LM; the sizes are those of Llama-3-8B's feed-forward layer.
"""

import torch
from torch import nn
from torch.nn import functional

tokens = 8192
width = 14336


class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.bias = nn.Parameter((0.5 * torch.randn(2 * width)).bfloat16())

    def forward(self, packed: torch.Tensor) -> torch.Tensor:
        gate, up = (packed + self.bias).chunk(2, -1)
        return functional.silu(gate) * up


def get_inputs():
    return [torch.randn(tokens, 2 * width).bfloat16()]


def get_init_inputs():
    return [width]
