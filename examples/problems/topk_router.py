"""Mixture-of-experts router: softmax over experts, the best k and their renormalized weights.

Decides in Mixtral- and DeepSeek-like models which experts see which token. Two outputs, of which
the chosen experts are integers; the bias keeps experts apart even for equal tokens.
"""

import torch
from torch import nn

tokens = 16
hidden = 1024
experts = 64
chosen = 2


class Model(nn.Module):
    def __init__(self, hidden: int, experts: int, chosen: int):
        super().__init__()
        self.gate = nn.Linear(hidden, experts)
        nn.init.normal_(self.gate.bias)
        self.chosen = chosen

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        probabilities = torch.softmax(self.gate(x), dim=-1)
        weights, indices = torch.topk(probabilities, self.chosen, dim=-1)
        return weights / weights.sum(dim=-1, keepdim=True), indices


def get_inputs():
    return [torch.randn(tokens, hidden)]


def get_init_inputs():
    return [hidden, experts, chosen]
