"""Gated linear recurrence: state = decay * state + (1 - decay) * value, along time.

The core of minGRU, HGRN and other linear recurrent layers. The decays come from the input, so the
scan cannot be turned into a convolution.
"""

import torch
from torch import nn

batch_size = 4
steps = 32
hidden = 256


class Model(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.gate = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        decay = torch.sigmoid(self.gate(x))
        update = (1 - decay) * self.value(x)
        state = torch.zeros_like(update[:, 0])
        states = []
        for step in range(x.shape[1]):
            state = decay[:, step] * state + update[:, step]
            states.append(state)
        return torch.stack(states, dim=1)


def get_inputs():
    return [torch.randn(batch_size, steps, hidden)]


def get_init_inputs():
    return [hidden]
