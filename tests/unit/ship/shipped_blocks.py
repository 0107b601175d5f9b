"""A model of small blocks, kernels for them, and runs that found these kernels."""

from contextlib import contextmanager

import pytest
import torch
from torch import nn

import adaexplore
from adaexplore.core.verdict.evaluation import Passed, Timing
from adaexplore.core.verdict.facts import ReferenceFacts

TIMING = Timing(9.0, (9.0, 9.0), {"eager": 1e6}, 1.5, (1.5, 1.5), 1.5, 7)


class Norm(nn.Module):
    """A layer inside the block, with a constant."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.eps = 1e-6

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class Block(nn.Module):
    """A gated block: linear layers, a buffer, a keyword; a constant and a tensor beside them."""

    def __init__(self, width=16):
        super().__init__()
        self.norm = Norm(width)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width)
        self.register_buffer("scale", torch.tensor(0.5))
        self.act = nn.functional.silu
        self.factors = {"residual": [1.0], "offset": (0.0, ("none", None))}
        self.offset = torch.zeros(width)

    def forward(self, x, *, residual=None):
        y = self.norm(x)
        y = self.down(self.act(self.gate(y)) * self.up(y)) * self.scale
        y = y * self.factors["residual"][0] + self.offset
        return y if residual is None else y + residual


class Net(nn.Module):
    """A user's model of several blocks."""

    def __init__(self, layers=2, width=16):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


KEEPS = """
        cached = self.__dict__.setdefault("cached", {})
        if not cached:
            cached.update({name: t.clone() for name, t in self.named_parameters()})
        weights = cached
"""
"""A forward that keeps copies of its weights, as candidates that pack them do."""

PLAIN = """
        weights = dict(self.named_parameters())
"""
FOLDED = """
        weights = self.folded
"""

CANDIDATE = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self, **shapes):
        super().__init__()
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(torch.zeros(shape)))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Part(weight=(16,))
        self.gate = Part(weight=(32, 16))
        self.up = Part(weight=(32, 16))
        self.down = Part(weight=(16, 32), bias=(16,))
        self.register_buffer("scale", torch.zeros(()))
        self.folded = {name: t.detach().clone() for name, t in self.named_parameters()}

    def forward(self, x):
WEIGHTS
        def of(name):
            weight = weights.get(name)
            return self.get_parameter(name) if weight is None else weight

        y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * of("norm.weight")
        both = y @ torch.cat([of("gate.weight"), of("up.weight")]).t()
        left, right = both.chunk(2, -1)
        y = (torch.sigmoid(left) * left * right) @ of("down.weight").t() + of("down.bias")
        return y * self.scale
"""


class Proposer:
    """A proposer of one source."""

    def __init__(self, source):
        self._source = source

    def begin(self, context):
        candidate = adaexplore.Candidate(self._source, context.problem.language)
        return adaexplore.Proposal(candidate, "plain", "")
        yield

    def close(self):
        pass


class Judge:
    """A judge who passes everything."""

    def prepare(self):
        return ReferenceFacts(baselines_us={"eager": 1e6})

    def evaluate(self, candidate, parent=None, *, again=False):
        return Passed("fp32", 1e-7, TIMING)

    def close(self):
        pass


def candidate(weights=PLAIN):
    return CANDIDATE.replace("WEIGHTS", weights)


@contextmanager
def no_compiler():
    """Let `torch.compile` of new processes be eager, which saves seconds."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHDYNAMO_DISABLE", "1")
        yield


def record(problem, path, source, inputs=(), language="cpp", **options):
    """Record the run of a problem whose winner is a source."""
    return adaexplore.optimize(
        problem,
        inputs,
        run=path,
        steps=1,
        language=language,
        evaluator=Judge(),
        proposer=Proposer(source),
        **options,
    )
