"""Traces itself with `torch.fx` and rewrites a node.

problem: elementwise
devices: cpu cuda
"""

import operator

import torch
import torch.nn.functional as F
from torch import fx, nn


class Chain(nn.Module):
    def forward(self, x, y):
        return torch.tanh(F.gelu(x) * torch.sigmoid(y) + x)


def fused():
    traced = fx.symbolic_trace(Chain())
    for node in list(traced.graph.nodes):
        if node.target is operator.add and node.args[0].target is operator.mul:
            product, addend = node.args
            with traced.graph.inserting_before(node):
                new = traced.graph.call_function(torch.addcmul, (addend, *product.args))
            node.replace_all_uses_with(new)
            traced.graph.erase_node(node)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    return traced


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.chain = fused()

    def forward(self, x, y):
        return self.chain(x, y)
