"""Small references, one for each thing that can be hard to take along."""

LINEAR_GELU = '''
import torch
from torch import nn

WIDTH = 24
torch.manual_seed(1)


class Model(nn.Module):
    """A layer and its activation."""

    def __init__(self, width: int):
        super(Model, self).__init__()
        self.linear = nn.Linear(width, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(8, WIDTH)]


def get_init_inputs():
    return [WIDTH]
'''

CONV_NORM = """
import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 3, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Model(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.layers = nn.Sequential(Block(channels), nn.Flatten(), nn.LazyLinear(4))
        self.layers(torch.zeros(1, 3, 8, 8, device=self.layers[0].conv.weight.device))
        self.layers[0].norm.reset_running_stats()

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.rand(2, 3, 8, 8)]
"""

STRUCTURED = """
from collections import namedtuple

import torch
from torch import nn

Pair = namedtuple("Pair", ["first", "second"])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 6)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.head = nn.Linear(6, 10, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens, extra, scale=2.0, flag=None):
        self.calls += 1
        hidden = self.embedding(tokens) * scale + extra["shift"][0]
        return {"logits": self.head(hidden), "pair": Pair(hidden, (hidden.sum(), None))}


def get_inputs():
    return [torch.randint(0, 10, (3, 4)), {"shift": [torch.randn(6)]}, 0.5]
"""

SOFTMAX = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1), x


def get_inputs():
    return [torch.randn(6, 40)]
"""

BRANCHING = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


def get_inputs():
    return [torch.randn(4)]
"""

TWO_LAYERS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.second = nn.Linear(32, 16)
        self.gain = nn.Parameter(torch.ones(16))
        self.table = torch.tensor([0.5, float("inf")])

    def forward(self, x):
        hidden = torch.sigmoid(self.first(x)) * self.table.clamp(max=2.0)[0]
        return torch.softmax(self.second(hidden) * self.gain + x, -1)


def get_inputs():
    return [torch.randn(4, 16)]
"""
