"""Log-sum-exp less the target's logit; a mean over rows into a tensor without dimensions.

problem: cross_entropy
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, target):
        picked = logits.gather(1, target[:, None]).squeeze(1)
        return (torch.logsumexp(logits, dim=1) - picked).mean()
