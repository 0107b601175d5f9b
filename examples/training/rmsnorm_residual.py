"""Residual sum and RMSNorm, as before each attention and MLP of Llama-like decoders, in bf16."""

import torch
from torch import nn

CASTS_ARE_PRECISION = True
tokens = 8192
hidden = 4096


class Model(nn.Module):
    def __init__(self, hidden: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter((1 + 0.1 * torch.randn(hidden)).bfloat16())
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + residual
        wide = total.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * (wide * scale).to(x.dtype), total


def get_inputs():
    return [torch.randn(tokens, hidden).bfloat16(), torch.randn(tokens, hidden).bfloat16()]


def get_init_inputs():
    return [hidden]
