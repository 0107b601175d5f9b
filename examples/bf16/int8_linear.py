"""A linear layer with int8 weights and a scale for each row: 16 tokens in bf16, and 1,024."""

import torch
import torch.nn.functional as F
from torch import nn

DECODED, PREFILL, WIDTH, OUTPUTS = 16, 1024, 4096, 11008


class Model(nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        weight = torch.randn(outputs, width) * width**-0.5
        scale = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("weight", (weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale.to(torch.bfloat16))

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype) * self.scale)


def get_input_groups():
    return [[torch.randn(tokens, WIDTH, dtype=torch.bfloat16)] for tokens in (DECODED, PREFILL)]


def get_init_inputs():
    return [WIDTH, OUTPUTS]
