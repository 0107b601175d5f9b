"""Mean cross entropy over 128,256 words for 4,096 tokens, some of them ignored; bf16 logits."""

import torch
import torch.nn.functional as F
from torch import nn

TOKENS, VOCABULARY = 4096, 128256


class Model(nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits.float(), labels, ignore_index=-100)


def get_inputs():
    labels = torch.randint(0, VOCABULARY, (TOKENS,))
    labels[torch.rand(TOKENS) < 0.1] = -100
    return [4 * torch.randn(TOKENS, VOCABULARY, dtype=torch.bfloat16), labels]
