"""Mean cross entropy over a vocabulary of 32,000 tokens; bf16 logits, computed in fp32."""

import torch
from torch import nn
from torch.nn import functional

CASTS_ARE_PRECISION = True
tokens = 8192
vocabulary = 32000


class Model(nn.Module):
    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(logits.float(), target)


def get_inputs():
    return [torch.randn(tokens, vocabulary).bfloat16(), torch.randint(vocabulary, (tokens,))]
