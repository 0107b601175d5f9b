"""A loss over labels, of which 255 marks what does not count."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        valid = y < 21
        t = x.log_softmax(1).gather(1, y.clamp(max=20)[:, None]).squeeze(1)
        return -(t * valid).sum() / valid.sum().clamp(min=1)


def get_inputs():
    y = torch.randint(0, 21, (2, 32, 32))
    y[torch.rand(2, 32, 32) < 0.1] = 255
    return [torch.randn(2, 21, 32, 32), y]
