"""SwiGLU feed-forward block: down(silu(gate(x)) * up(x)).

The MLP of Llama, Mistral and Qwen; most of a decoder's weights and time are here.
"""

import torch
import torch.nn.functional as F
from torch import nn

tokens = 4
hidden = 512
inner = 1408


class Model(nn.Module):
    def __init__(self, hidden: int, inner: int):
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs():
    return [torch.randn(tokens, hidden)]


def get_init_inputs():
    return [hidden, inner]
