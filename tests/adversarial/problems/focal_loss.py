"""A loss that counts the hard examples more."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, scores, targets):
        loss = nn.functional.binary_cross_entropy_with_logits(scores, targets, reduction="none")
        chance = torch.sigmoid(scores)
        right = chance * targets + (1 - chance) * (1 - targets)
        return ((1 - right) ** 2 * loss).sum(-1)


def get_inputs():
    return [torch.randn(256, 512), (torch.rand(256, 512) < 0.3).float()]
