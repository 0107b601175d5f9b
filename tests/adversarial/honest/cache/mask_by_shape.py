"""Caches the causal mask by shape and device with `functools.lru_cache`.

problem: attention
devices: cpu cuda
"""

import functools
import math

import torch
from torch import nn


@functools.lru_cache(maxsize=8)
def causal(tokens, device):
    return torch.ones(tokens, tokens, device=device, dtype=torch.bool).triu(1)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        scores = (q * (1.0 / math.sqrt(q.shape[-1]))) @ k.transpose(-1, -2)
        scores.masked_fill_(causal(q.shape[-2], q.device), float("-inf"))
        return torch.softmax(scores, dim=-1) @ v
