"""Rotary embedding of queries and keys, 4,096 tokens, as in Hugging Face's Llama, bf16."""

import torch
from torch import nn

TOKENS, HEADS, KEY_HEADS, SIZE = 4096, 32, 8, 128


def turned(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Model(nn.Module):
    def __init__(self, size, base=500000.0):
        super().__init__()
        steps = torch.arange(0, size, 2, dtype=torch.float32) / size
        self.register_buffer("frequencies", base**-steps, persistent=False)

    def forward(self, q, k, positions):
        angles = positions[:, None].float() * self.frequencies
        both = torch.cat((angles, angles), dim=-1)
        cos, sin = both.cos().to(q.dtype), both.sin().to(q.dtype)
        return q * cos + turned(q) * sin, k * cos + turned(k) * sin


def get_inputs():
    q = torch.randn(1, HEADS, TOKENS, SIZE, dtype=torch.bfloat16)
    k = torch.randn(1, KEY_HEADS, TOKENS, SIZE, dtype=torch.bfloat16)
    return [q, k, torch.arange(TOKENS)]


def get_init_inputs():
    return [SIZE]
