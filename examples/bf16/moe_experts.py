"""Routing of 2,048 tokens to 2 of 8 gated experts, as in Mixtral, bf16."""

import torch
import torch.nn.functional as F
from torch import nn

TOKENS, WIDTH, HIDDEN, EXPERTS, CHOSEN = 2048, 2048, 4096, 8, 2


class Model(nn.Module):
    def __init__(self, width, hidden, experts, chosen):
        super().__init__()
        self.chosen = chosen
        self.router = nn.Linear(width, experts, bias=False, dtype=torch.bfloat16)
        scale = width**-0.5
        self.gate_up = nn.Parameter(
            scale * torch.randn(experts, 2 * hidden, width, dtype=torch.bfloat16)
        )
        self.down = nn.Parameter(
            hidden**-0.5 * torch.randn(experts, width, hidden, dtype=torch.bfloat16)
        )

    def forward(self, x):
        shares = F.softmax(self.router(x).float(), dim=-1)
        weights, experts = shares.topk(self.chosen, dim=-1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        out = torch.zeros_like(x)
        for number in range(len(self.gate_up)):
            token, place = (experts == number).nonzero(as_tuple=True)
            gate, up = F.linear(x[token], self.gate_up[number]).chunk(2, dim=-1)
            found = F.linear(F.silu(gate) * up, self.down[number])
            out.index_add_(0, token, found * weights[token, place, None])
        return out


def get_inputs():
    return [torch.randn(TOKENS, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs():
    return [WIDTH, HIDDEN, EXPERTS, CHOSEN]
