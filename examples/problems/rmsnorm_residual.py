"""RMSNorm of a residual sum, returning both the normalized activations and the sum.

Stands before every attention and MLP of Llama-like decoders, where serving engines fuse the
addition into the norm. Two outputs: what the next layer reads, and the new residual stream.
"""

import torch
from torch import nn

tokens = 256
hidden = 2048


class Model(nn.Module):
    def __init__(self, hidden: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        residual = x + residual
        scale = torch.rsqrt(residual.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return residual * scale * self.weight, residual


def get_inputs():
    return [torch.randn(tokens, hidden), torch.randn(tokens, hidden)]


def get_init_inputs():
    return [hidden]
