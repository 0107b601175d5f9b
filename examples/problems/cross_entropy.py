"""Language-model head with per-token cross entropy and the z-loss term.

Scores a text: hidden states are projected to the vocabulary, and each token's negative log
likelihood and squared log partition function (the regularizer of PaLM and ST-MoE) are returned by
name. The targets are integers.
"""

import torch
from torch import nn

tokens = 32
hidden = 256
vocabulary = 4096


class Model(nn.Module):
    def __init__(self, hidden: int, vocabulary: int):
        super().__init__()
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        nn.init.normal_(self.head.weight, std=4 * hidden**-0.5)  # peaked, as after training

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.head(x)
        log_partition = torch.logsumexp(logits, dim=-1)
        picked = logits.gather(-1, target.unsqueeze(-1)).squeeze(-1)
        return {"loss": log_partition - picked, "z_loss": log_partition.square()}


def get_inputs():
    return [torch.randn(tokens, hidden), torch.randint(vocabulary, (tokens,))]


def get_init_inputs():
    return [hidden, vocabulary]
