"""Scaled softmax of attention scores with padded keys masked out.

What batched encoders compute between the two matrix products of attention when sequences in a batch
differ in length. In eager mode three passes read and write every score; one is enough. The lengths
are integers.
"""

import torch
from torch import nn

batch_size = 4
heads = 8
tokens = 96
head_size = 64


class Model(nn.Module):
    def __init__(self, head_size: int):
        super().__init__()
        self.scale = head_size**-0.5

    def forward(self, scores: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        position = torch.arange(scores.shape[-1], device=scores.device)
        padded = position >= lengths.view(-1, 1, 1, 1)
        return torch.softmax((scores * self.scale).masked_fill(padded, -torch.inf), dim=-1)


def get_inputs():
    return [
        10 * torch.randn(batch_size, heads, tokens, tokens),
        torch.randint(tokens // 2, tokens + 1, (batch_size,)),
    ]


def get_init_inputs():
    return [head_size]
